"""HTTP for the gateway's handlers: connections, requests, arguments, bodies and answers."""
