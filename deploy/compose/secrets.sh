#!/bin/sh
# Write the secrets of compose.yaml: `./secrets.sh KEY.pem [WEBHOOK_SECRET]`, with the App's private key; once.
set -eu
key=${1:?the file of the private key that GitHub gave for the App}
webhook=${2:-$(openssl rand -hex 32)}
folder=$(dirname "$0")/secrets
if [ -e "$folder/postgres_password" ]; then
    echo "$folder has secrets already: remove them first, and the volume of PostgreSQL with them." >&2
    exit 1
fi
mkdir -p "$folder"
chmod 711 "$folder"
password=$(openssl rand -hex 32)
printf %s "$password" > "$folder/postgres_password"
printf %s "postgresql://mergeplan:$password@postgres/mergeplan" > "$folder/mergeplan_state_url"
printf %s "$webhook" > "$folder/mergeplan_webhook_secret"
cat "$key" > "$folder/mergeplan_github_private_key"
chmod 444 "$folder"/* # Compose mounts files with the mode that they have here, and the containers' users are not you
echo "The webhook's secret is in $folder/mergeplan_webhook_secret: give it to the App."
