"""The Foolscap transport: storage servers and their clients. [spec wire A]"""
