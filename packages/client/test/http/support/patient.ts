/** A transport whose idle sockets stay open, so that only the end of a connection closes them. */
import type { Transport } from "@skein/runtime/Connection"
import * as HttpConnection from "../../../src/internal/http/connection.ts"
import * as NodeClient from "../../../src/internal/http/nodeClient.ts"

/** The transport of `NodeHttp` with other bounds. */
export const patient = (url: URL): Transport =>
  HttpConnection.transport(() => NodeClient.make({}, { maxSockets: 256, idleTimeout: 3_600_000 }), { url })
