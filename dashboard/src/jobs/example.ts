/** The example that an empty table offers, and the command that submits it. Any cluster can run it. Pure. */

export const FIRST_NAMESPACE = "default";

export const FIRST_JOB = `apiVersion: batch.tensorstack.dev/v1beta1
kind: GenericJob
metadata:
  name: hello
spec:
  replicaSpecs:
    - type: worker
      replicas: 2
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
            - name: main
              image: python:3.12-slim
              command: [sh, -c, 'for step in 1 2 3 4 5; do echo "step $step"; sleep 1; done']
`;

/** Return the command for a shell that submits the example to the gateway at this address, and follows it. */
export function commandOf(address: string): string {
  const server = address.replace(/\/$/, "");
  return `jobgate submit -f - --namespace ${FIRST_NAMESPACE} --server ${server} --watch <<'YAML'\n${FIRST_JOB}YAML\n`;
}
