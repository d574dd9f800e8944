/**
 * Other servers behind a server.
 *
 * @example
 * new AsyncServer({ name: "desk", version: "1.0.0" }).use(proxies(NodeConfig.file("mcp.json"))).runStdio()
 */
export * from "./internal/gateway/proxy.ts"
