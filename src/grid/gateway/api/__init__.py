"""The gateway's web API as an OpenAPI document for programs. Pure."""
