#!/bin/sh
# Writes a kubeconfig for jobgate that has the rights of deploy/rbac.yaml and no others.
#
#   kubeconfig.sh ADMIN SERVER OUTPUT
#
# ADMIN is the kubeconfig of an admin of the cluster, and SERVER the URL at which jobgate reaches the API server.
# The owner of OUTPUT is the user of the image, if this script runs as root.
set -eu
admin=$1 server=$2 output=$3

as_admin() { kubectl --kubeconfig="$admin" --server="$server" "$@"; }

token=$(as_admin create token jobgate-controller --namespace=jobgate-system --duration=87600h)
authority=$(kubectl --kubeconfig="$admin" config view --raw --flatten --minify \
  --output='jsonpath={.clusters[0].cluster.certificate-authority-data}')

umask 077
cat > "$output.new" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: k3s, cluster: {server: "$server", certificate-authority-data: "$authority"}}]
users: [{name: jobgate-controller, user: {token: "$token"}}]
contexts: [{name: jobgate, context: {cluster: k3s, user: jobgate-controller}}]
current-context: jobgate
YAML
if [ "$(id -u)" = 0 ]; then chown 10001:10001 "$output.new"; fi
# By renaming: a process that starts meanwhile reads the old file or the new one.
mv "$output.new" "$output"
