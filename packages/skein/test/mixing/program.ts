/**
 * A program with both the package `skein` and the packages `@skein/*`, each with its own copy of Effect, as after `npm install`.
 * It passes values of one to the other, and prints what happens as JSON.
 */
import { AsyncClient } from "@skein/client/AsyncClient"
import * as CoreProtect from "@skein/auth/Protect"
import * as CoreScopes from "@skein/auth/Scopes"
import * as CoreStore from "@skein/auth/TokenStore"
import * as CoreVerifier from "@skein/auth/TokenVerifier"
import * as CoreMcpError from "@skein/protocol/McpError"
import * as CoreServer from "@skein/server/AsyncServer"
import type { HandlerContext } from "@skein/server/HandlerContext"
import * as StateStore from "@skein/server/StateStore"
import * as HandlerError from "@skein/server/HandlerError"
import * as CoreHttp from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { registerHooks } from "node:module"
import type * as Skein from "skein"
import type * as SkeinAuth from "skein/auth"
import type * as SkeinClient from "skein/client"

// Each module that `skein` imports is loaded a second time, under another URL.
registerHooks({
  resolve: (specifier, context, next) => {
    const isCopied = specifier.endsWith("?copy") || context.parentURL?.endsWith("?copy") === true
    const found = next(specifier.replace(/\?copy$/, ""), context)
    return isCopied && found.url.startsWith("file:") ? { ...found, url: `${found.url}?copy` } : found
  }
})

const copy = "?copy"
const skein = await import(`skein${copy}`) as typeof Skein
const skeinClient = await import(`skein/client${copy}`) as typeof SkeinClient
const auth = await import(`skein/auth${copy}`) as typeof SkeinAuth

const outcomes: Record<string, unknown> = {}

const attempt = async (name: string, run: () => unknown): Promise<void> => {
  try {
    outcomes[name] = await run()
  } catch (error) {
    outcomes[name] = String(error)
  }
}

const description = { name: "tea", version: "1.0.0" }
const skeinTool = skein.tool("brew", {}, () => "tea") as never
const coreTool = Tool.async(Tool.make("brew"), () => "tea") as never

outcomes["are two copies"] = skein.VisibleError !== HandlerError.VisibleError
await attempt("a definition of skein in use", () => new CoreServer.AsyncServer(description).use(skeinTool))
await attempt("a definition of skein in add", async () => {
  const server = new CoreServer.AsyncServer(description)
  const { close } = await server.listen({ port: 0 })
  try {
    return await server.add(skeinTool)
  } finally {
    await close()
  }
})
await attempt(
  "a definition of skein in McpServer.layer",
  () => Effect.runPromise(Effect.scoped(Layer.build(McpServer.layer(description, skeinTool))))
)
await attempt(
  "a server of skein in use",
  () => new CoreServer.AsyncServer(description).use(new skein.AsyncServer(description) as never)
)
await attempt("a definition of @skein in use", () => new skein.AsyncServer(description).use(coreTool))
await attempt("a store of @skein in OAuth", () =>
  auth.OAuth.make({
    grant: auth.Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: "https://login.example" }),
    store: CoreStore.layerMemory as never
  }))

await attempt(
  "a store of skein in provide",
  () => new CoreServer.AsyncServer(description).provide(skein.memoryState() as never)
)
await attempt(
  "a store of @skein in use",
  () => new skein.AsyncServer(description).use(StateStore.layerMemory() as never)
)

const called = async (
  client: { readonly callTool: (name: string) => Promise<object>; readonly close: () => Promise<void> }
) => {
  const { content } = await client.callTool("brew") as { readonly content: ReadonlyArray<{ readonly text: string }> }
  await client.close()
  return content[0]?.text
}
await attempt("a transport of skein in AsyncClient", async () => {
  const server = new skein.AsyncServer(description).tool("brew", {}, () => "tea")
  return called(await AsyncClient.connect(server.transport() as never))
})
await attempt("a transport of @skein in AsyncClient", async () => {
  const server = new CoreServer.AsyncServer(description).tool("brew", {}, () => "tea")
  return called(await skeinClient.AsyncClient.connect(server.transport() as never) as never)
})
await attempt("a context of @skein in Scopes.require", async () => {
  const server = new CoreServer.AsyncServer(description).tool("brew", {}, async (_, context) => {
    await auth.Scopes.require(context, "tea:write")
    return "tea"
  })
  return called(await AsyncClient.connect(server.transport() as never))
})
await attempt("a context of skein in run", async () => {
  const server = new skein.AsyncServer(description).tool("brew", {}, async (_, context) => {
    const { run } = context as unknown as HandlerContext
    await run(CoreScopes.require("tea:write"))
    return "tea"
  })
  return called(await AsyncClient.connect(server.transport() as never))
})

interface Server {
  readonly tool: (name: string, options: object, handler: () => unknown) => void
  readonly resource: (uri: string, options: object, handler: () => unknown) => void
  readonly transport: () => unknown
  readonly listen: (options: object) => Promise<{ readonly url: string; readonly close: () => Promise<void> }>
}

const post = (url: string, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }
    })
  })

const both = [
  ["skein", new skein.AsyncServer(description) as never, {
    visible: new HandlerError.VisibleError("seen"),
    invalid: CoreMcpError.invalidParams("bad"),
    refusal: new CoreHttp.Refusal({ status: 418, message: "tea" }),
    result: Tool.result({ content: "own", isError: true })
  }],
  ["@skein", new CoreServer.AsyncServer(description) as never, {
    visible: new skein.VisibleError("seen"),
    invalid: skein.invalidParams("bad"),
    refusal: new skein.Refusal({ status: 418, message: "tea" }),
    result: skein.result({ content: "own", isError: true })
  }]
] as const

for (const [name, given, { invalid, refusal, result, visible }] of both) {
  const server: Server = given
  const failing = (error: Error) => () => {
    throw error
  }
  server.tool("visible", {}, failing(visible))
  server.tool("result", {}, () => result)
  server.resource("tea://menu", {}, failing(invalid))
  const client = await AsyncClient.connect(server.transport() as never)
  for (const tool of ["visible", "result"]) {
    await attempt(`${tool} of the other in ${name}`, async () => {
      const { content, isError } = await client.callTool(tool)
      return [isError, (content as ReadonlyArray<{ readonly text: string }>)[0]?.text]
    })
  }
  await attempt(`McpError of the other in ${name}`, async () => {
    try {
      return await client.readResource("tea://menu")
    } catch (error) {
      const { cause, message } = error as { readonly cause?: { readonly reason?: string }; readonly message: string }
      return [cause?.reason, message]
    }
  })
  await client.close()
  await attempt(`Refusal of the other in ${name}`, async () => {
    const { close, url } = await server.listen({ port: 0, principal: failing(refusal) })
    const { status } = await post(url)
    await close()
    return status
  })
}

const resource = "http://127.0.0.1/mcp"
const own = {
  issuer: "https://login.example",
  audiences: ["tea"],
  verify: async () => ({ audiences: ["tea"], expiresAt: undefined, subject: "ada" })
}
const protections = [
  [
    "skein",
    new skein.AsyncServer(description) as never,
    CoreProtect.make({ resource, verify: CoreVerifier.make(own) })
  ],
  [
    "@skein",
    new CoreServer.AsyncServer(description) as never,
    auth.protect({ resource, verify: auth.TokenVerifier.make(own) })
  ]
] as const
for (const [name, given, protection] of protections) {
  const server: Server = given
  await attempt(`the protection of the other in ${name}`, async () => {
    const { close, url } = await server.listen({ port: 0, protection })
    const statuses = [(await post(url)).status, (await post(url, { authorization: "Bearer a" })).status]
    await close()
    return statuses
  })
}

process.stdout.write(JSON.stringify(outcomes))
