/** A host page in Chromium: a server with pages, a sandbox proxy, and a document that shows the page of a tool. */
import * as SandboxProxy from "@skein/apps/SandboxProxy"
import * as Cors from "@skein/server/Cors"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as RawServer from "@skein/testing/RawServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import { browserScript } from "../../../examples/browserScript.ts"

/** Bundles a script for a browser, from a file or from its text. */
export const bundle = (source: { readonly file: string } | { readonly text: string }): Promise<string> =>
  browserScript(
    "file" in source
      ? { entryPoints: [source.file] }
      : { stdin: { contents: source.text, resolveDir: import.meta.dirname, loader: "ts" } }
  )

/** A server of one document and one script. It records the paths of its requests. */
const pages = (script: () => string) =>
  Effect.gen(function*() {
    const paths: Array<string> = []
    const { url } = yield* RawServer.http((request, response) => {
      const path = request.url!
      paths.push(path)
      const isScript = path === "/host.js"
      response.writeHead(200, {
        "content-type": isScript ? "text/javascript" : "text/html; charset=utf-8",
        "access-control-allow-origin": "*"
      }).end(
        isScript
          ? script()
          : "<!doctype html><link rel=icon href=data:,><body><script type=module src=/host.js></script>"
      )
    })
    return { origin: url.origin, paths }
  })

/** Serves definitions to a host page that runs `script`, with the addresses of the server and of the sandbox in its query. */
export const open = (
  script: string,
  definitions: ReadonlyArray<McpServer.Definitions>,
  proxy: Partial<SandboxProxy.Options> = {}
) =>
  Effect.gen(function*() {
    const host = yield* pages(() => script)
    // Another origin, which no page declares.
    const foreign = yield* pages(() => "")
    const sandbox = SandboxProxy.make({ hostOrigins: [host.origin], ...proxy })
    const sandboxServer = yield* RawServer.http((request, response) => {
      const { body, headers, status } = sandbox.answer(request.url!)
      response.writeHead(status, headers).end(body)
    })
    const layer = McpServer.layer({ name: "shop", version: "1.0.0" }, ...definitions) as Layer.Layer<
      McpServer.McpServer
    >
    const listening = Layer.provide(
      NodeHttp.layer({ port: 0, allowedOrigins: [host.origin], cors: Cors.make() }),
      layer
    )
    const server = Context.get(yield* Layer.build(listening), NodeHttp.Server)
    const url = new URL(host.origin)
    url.searchParams.set("server", String(server.url))
    url.searchParams.set("sandbox", sandboxServer.url.origin)
    url.searchParams.set("foreign", foreign.origin)
    return { url, foreign, sandbox: sandboxServer.url.origin }
  })

/** The beginning of a host page: connects, and shows the page of the tool `show`. `report` collects the logs of the page. */
export const hostScript = (options = ""): string => `
  import * as AppFrame from "@skein/apps/AppFrame"
  import * as AppHost from "@skein/apps/AppHost"
  import * as Client from "@skein/client/Client"
  import * as Http from "@skein/client/Http"
  import * as Effect from "effect/Effect"
  const query = new URLSearchParams(location.search)
  const state = globalThis.state = { logs: [], sizes: [], attacked: false }
  const frame = document.createElement("iframe")
  document.body.append(frame)
  Effect.runFork(Effect.scoped(Effect.gen(function*() {
    const client = yield* Client.make(Http.transport({ url: query.get("server") }), { extensions: AppHost.extensions })
    const tool = (yield* client.listTools()).find(({ name }) => name === "show")
    state.session = yield* AppHost.open(client, tool, {
      allowSource: (source) => source !== "https://refused.example",
      allowPermission: (permission) => permission === "clipboardWrite",
      context: { theme: "light" },
      log: ({ data }) => Effect.sync(() => state.logs.push(data)),
      ${options}
    })
    yield* AppFrame.mount(frame, state.session, { sandboxUrl: query.get("sandbox") })
    yield* state.session.call({ foreign: query.get("foreign") })
    return yield* Effect.never
  })).pipe(Effect.catch((error) => Effect.sync(() => { state.failed = error.message }))))
`

export const testFile = (name: string): string => join(import.meta.dirname, name)
