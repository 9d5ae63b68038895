"""How clients find servers: announcements, introducers, static lists, and the live set."""
