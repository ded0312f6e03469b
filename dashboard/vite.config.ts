import react from "@vitejs/plugin-react";
import { loadEnv } from "vite";
import { defineConfig } from "vitest/config";
import { reactAriaCsp } from "./react-aria-csp";

const GATEWAY = loadEnv("development", ".", "JOBGATE_").JOBGATE_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react(), reactAriaCsp()],
  // Relative addresses, so that the page also works behind a proxy that adds a prefix.
  base: "./",
  build: {
    outDir: "built",
    emptyOutDir: true,
    target: "es2022",
    // The Content-Security-Policy permits neither data URLs nor inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // A slow machine must meet the deadline too. The modules of the tests keep no state, so one process can run many files.
  test: { testTimeout: 60_000, isolate: false },
  server: {
    // The page contains the examples and the schema of the pod template, which are outside of this directory.
    fs: { allow: [".."] },
    // `npx vite` serves the sources beside a gateway, which permits changes only to pages of its own origin.
    proxy: { "/api": { target: GATEWAY, changeOrigin: true, headers: { Origin: GATEWAY } } },
  },
});
