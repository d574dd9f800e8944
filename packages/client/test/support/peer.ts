import { ClientImpl } from "../../src/internal/client/client.ts"

/** The peer of a client's present connection. */
export const peerOf = ClientImpl.peerOf
