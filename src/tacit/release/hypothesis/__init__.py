"""What public knowledge is: distributions and noisy tables that answer questions, and the fits that make them."""
