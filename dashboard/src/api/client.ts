import createClient, { type Client } from "openapi-fetch";
import { exchanged } from "../session/oidc";
import { renewing } from "../session/renewing";
import type { TabStorage } from "../session/tab-storage";
import type { paths } from "./schema";
import { Session } from "./session";
import { type OnContact, Transport } from "./transport";

export type ApiClient = Client<paths>;

/** Everything that the page needs to call the gateway. */
export interface Api {
  session: Session;
  transport: Transport;
  client: ApiClient;
}

export function createApi(base: string, storage: TabStorage, onContact: OnContact): Api {
  const session = new Session(storage);
  const renewToken = renewing(session, (refreshToken) => exchanged(base, { refreshToken }));
  const transport = new Transport(session, base, onContact, renewToken);
  const client = createClient<paths>({ baseUrl: base.replace(/\/$/, ""), fetch: transport.fetch });
  return { session, transport, client };
}

/** Return the body of a successful answer. The transport has rejected all others. */
export function bodyOf<T>(result: { data?: T }): T {
  if (result.data === undefined) throw new Error("the answer has no body");
  return result.data;
}
