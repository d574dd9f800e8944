export * as JsonRpc from "./JsonRpc.ts"
export * as Revision from "./Revision.ts"
