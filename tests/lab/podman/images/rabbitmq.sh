# The server itself heeds RABBITMQ_DEFAULT_USER and RABBITMQ_DEFAULT_PASS.
set -e
chown -R rabbitmq: /var/lib/rabbitmq
export HOME=/var/lib/rabbitmq
exec setpriv --reuid rabbitmq --regid rabbitmq --init-groups /usr/lib/rabbitmq/bin/rabbitmq-server
