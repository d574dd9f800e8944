import * as Client from "@skein/client/Client"
import * as ResponseCache from "@skein/client/ResponseCache"
import type { Transport } from "@skein/runtime/Connection"

// #region shared
const store = ResponseCache.make({ maxEntries: 10_000 })

export const clientOf = (transport: Transport, user: string) =>
  Client.make(transport, {
    cache: { store, server: "https://example.com/mcp", partition: user, staleIfError: "5 minutes" }
  })
// #endregion
