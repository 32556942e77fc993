"""A server in a process of its own and clients on its sockets: what the server's benchmark and its hard tests share."""
