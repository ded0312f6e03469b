import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createApi } from "./api/client";
import { ApiError } from "./api/problems";
import { App } from "./app";
import { NO_CONTACT, withContact } from "./live/freshness";
import { Store } from "./live/store";
import { PageProvider, pageContext } from "./page-context";
import { finishSignIn, renewalOf } from "./session/oidc";
import { tabStorage } from "./session/tab-storage";
import { LoadError } from "./ui/failed-part";
import { Part } from "./ui/part";
import "./styles.css";

const contact = new Store(NO_CONTACT);
const base = new URL(".", window.location.href).href;
const api = createApi(base, tabStorage, (each) => {
  contact.update((state) => withContact(state, each, Date.now()));
});
const queries = new QueryClient({
  defaultOptions: {
    // A request is sent also if the browser believes that it is offline: the gateway may be on this machine, and a
    // request that waits in silence would be sent long after the user has pressed the button.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      // The streams say when to read again.
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 3 && error instanceof ApiError && error.isTemporary,
    },
  },
});
const page = pageContext(api, contact);
// A new token starts everything from the beginning: it may reach other namespaces.
api.session.subscribe(() => {
  if (api.session.isRefused) return;
  for (const changes of [page.jobChanges, page.setChanges, page.sampleJobChanges]) changes.restart();
  void queries.invalidateQueries();
});

try {
  const answer = await finishSignIn(base, tabStorage);
  if (answer !== null) api.session.signIn(answer.token, renewalOf(answer));
} catch (cause) {
  api.session.failed(cause instanceof Error ? cause.message : String(cause));
}

const element = document.getElementById("page");
if (element !== null) {
  createRoot(element, {
    onCaughtError: (error) => {
      // The page itself says which part could not be loaded.
      if (!(error instanceof LoadError)) reportError(error);
    },
  }).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <PageProvider page={page}>
          <Part what="the page">
            <App />
          </Part>
        </PageProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}
