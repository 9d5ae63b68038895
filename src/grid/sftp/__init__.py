"""The SFTP door: serves a grid's files and directories to sftp, scp, sshfs and other SFTP clients."""
