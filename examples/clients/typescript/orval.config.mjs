// The options of orval. The functions call `fetch` with the address of the gateway from the environment.
export default {
  jobgate: {
    input: "openapi.json",
    output: { target: "orval/jobgate.ts", client: "fetch", baseUrl: { runtime: "process.env['JOBGATE_URL']" } },
  },
};
