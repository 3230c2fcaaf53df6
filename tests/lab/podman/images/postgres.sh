# A server that makes its database first, and answers on its socket only meanwhile. It takes its time: whoever
# starts with it comes too early.
set -e
PATH="$PATH:$(echo /usr/lib/postgresql/*/bin)"
export PGDATA=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -m 700 "$PGDATA"
    install -d -o postgres /run/postgresql
    exec setpriv --reuid postgres --regid postgres --init-groups sh "$0"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    sleep 15
    echo "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username "$POSTGRES_USER" --pwfile /tmp/password
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --wait --options "-c listen_addresses=''" start
    createdb --username "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl --wait --mode fast stop
fi
exec postgres -c "listen_addresses=*"
