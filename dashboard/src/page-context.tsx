import { createContext, type ReactNode, use } from "react";
import type { Api } from "./api/client";
import type { JobStatus, SampleJobSummary, SampleSetSummary } from "./api/types";
import { Changes } from "./live/changes";
import { type ContactState, NO_CONTACT } from "./live/freshness";
import { Store, useStore } from "./live/store";

/** What all views share: the API, one stream of changes for each resource, and what is known about freshness. */
export interface PageContext {
  api: Api;
  jobChanges: Changes<JobStatus>;
  setChanges: Changes<SampleSetSummary>;
  sampleJobChanges: Changes<SampleJobSummary>;
  contact: Store<ContactState>;
}

export function pageContext(api: Api, contact: Store<ContactState> = new Store(NO_CONTACT)): PageContext {
  return {
    api,
    jobChanges: new Changes(api.transport, "jobs", "job"),
    setChanges: new Changes(api.transport, "samplesets", "sampleset"),
    sampleJobChanges: new Changes(api.transport, "samplejobs", "samplejob"),
    contact,
  };
}

const Context = createContext<PageContext | null>(null);

export function PageProvider({ page, children }: { page: PageContext; children: ReactNode }) {
  return <Context value={page}>{children}</Context>;
}

export function usePage(): PageContext {
  const page = use(Context);
  if (page === null) throw new Error("the component is outside PageProvider");
  return page;
}

/** Return what is known about the contact with the gateway. */
export function useContact(): ContactState {
  return useStore(usePage().contact);
}
