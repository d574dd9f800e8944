import { ClientImpl } from "../../src/internal/client.ts"

/** The peer of the connection that a client has now. */
export const peerOf = ClientImpl.peerOf
