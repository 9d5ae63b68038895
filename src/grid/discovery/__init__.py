"""How clients learn of servers: announcements, introducers, static lists, and the live set."""
