export * as JsonRpc from "./JsonRpc.ts"
export * as McpError from "./McpError.ts"
export * as Revision from "./Revision.ts"
