"""What a release is published as: packages of Debian, containers, the list of licences."""
