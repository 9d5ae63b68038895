"""HTTP as the gateway's handlers see it: connections, requests, arguments, bodies, and answers."""
