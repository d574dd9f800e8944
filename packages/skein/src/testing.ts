/**
 * Servers for the tests of clients: with faults, or with responses that a test writes. A server of your own is tested by a
 * client in the same process: `AsyncClient.connect(server.transport())`.
 *
 * @example
 * await using server = await FaultyServer.http({ faults: [Scenario.rule("request", Scenario.cut(100))] })
 * await using client = await AsyncClient.connect(server.url)
 * await expect(client.callTool("echo", { key: "once" })).rejects.toThrow(ClientError)
 * expect(server.callCount("once")).toBe(1)
 */
export type { Transport } from "./internal/base/definition.ts"
export type { JsonObject, Revision } from "./internal/base/messages.ts"
export type { TransportError } from "./internal/client/errors.ts"
export * from "./internal/testing/faultyAuthorizationServer.ts"
export * from "./internal/testing/faultyServer.ts"
export type { Opened } from "./internal/testing/opened.ts"
export * from "./internal/testing/rawServers.ts"
export * from "./internal/testing/scriptedServer.ts"
