import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as RateLimit from "@skein/server/RateLimit"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Timeout from "@skein/server/Timeout"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { resolve, sep } from "node:path"

// #region path
const folder = resolve(import.meta.dirname)

// `{+path}` also matches slashes. `..%2f` does not match, but the folder may have links.
const file = ResourceTemplate.layer(
  ResourceTemplate.make("vault://{+path}", { name: "file", mimeType: "text/plain" }),
  ({ path }, uri) => {
    const at = resolve(folder, path)
    return at.startsWith(folder + sep)
      ? Effect.catch(Effect.tryPromise(() => readFile(at, "utf8")), () => Effect.fail(Resource.notFound(uri)))
      : Effect.fail(Resource.notFound(uri))
  }
)
// #endregion

const echo = Tool.layer(
  Tool.make("echo", { input: { text: Schema.String } }),
  ({ text }) => Effect.succeed(text)
)

const whoami = Tool.layer(
  Tool.make("whoami"),
  () => Effect.map(Principal.current, Option.match({ onNone: () => "anonymous", onSome: ({ id }) => id }))
)

const Vault = McpServer.layer(
  { name: "vault", version: "1.0.0" },
  RateLimit.layer({ limit: 30, interval: "1 minute", methods: "all" }),
  Timeout.layer({ timeout: "10 seconds" }),
  file,
  echo,
  whoami
)

const principals = new Map([["Bearer ada", { id: "ada" }], ["Bearer bob", { id: "bob" }]])
const mcp = await NodeHttp.mount(Vault, {
  allowedHosts: ["localhost", "vault.example.com"],
  limits: { maxMessageBytes: 65_536 }
})

createServer((request, response) => {
  const principal = principals.get(request.headers.authorization ?? "")
  if (principal === undefined) return response.writeHead(401, { "www-authenticate": "Bearer" }).end()
  mcp.handler(request, response, { principal })
}).listen(3000, "127.0.0.1")
