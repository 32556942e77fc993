"""What people look at: pictures, tables for other libraries, and pages, of what was released and nothing else."""
