/**
 * Other servers behind a server.
 *
 * @example
 * new AsyncServer({ name: "desk", version: "1.0.0" }).use(gateway(NodeConfig.file("mcp.json"))).runStdio()
 */
export * from "./internal/gateway/gateway.ts"
export * from "./internal/gateway/proxy.ts"
