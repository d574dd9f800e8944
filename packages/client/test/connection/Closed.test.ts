/** Calls on a client whose scope has closed. */
import { assert, describe, it } from "@effect/vitest"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import { fieldsOf } from "../support/fields.ts"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import { minute } from "../cache/cached.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const answers = {
  ...minute,
  resultType: "complete",
  tools: [],
  resources: [],
  resourceTemplates: [],
  prompts: [],
  contents: [],
  messages: [],
  content: [],
  completion: { values: [] }
}

const every = (client: Client.Client): Readonly<Record<string, Effect.Effect<unknown, ClientError>>> => ({
  listTools: client.listToolsPage(),
  listResources: client.listResourcesPage(),
  listResourceTemplates: client.listResourceTemplatesPage(),
  listPrompts: client.listPromptsPage(),
  readResource: client.readResource("r:1"),
  callTool: client.callTool("t"),
  getPrompt: client.getPrompt("p"),
  complete: client.complete({ ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } }),
  setLoggingLevel: client.setLoggingLevel("info"),
  request: client.request(Method.ListTools, {}),
  changes: Stream.runDrain(client.changes({ tools: true }))
})

describe("a closed client", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · fails every method with Closed, and returns nothing from its cache`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(ScriptedServer.handshake(revision, () => ScriptedServer.success(answers)))
        const scope = yield* Scope.make()
        const client = yield* Scope.provide(Client.make(server.transport, { revisions: [revision] }), scope)
        const { changes: _, ...once } = every(client)
        for (const asked of Object.values(once)) yield* Effect.exit(asked)
        yield* client.listToolsPage()
        const sent = server.methods.length
        yield* Scope.close(scope, Exit.void)
        const after = server.methods.length
        for (const [name, asked] of Object.entries(every(client))) {
          const { end, message, reason, undelivered } = fieldsOf(yield* Effect.flip(asked))
          assert.deepStrictEqual([name, reason, end?._tag, undelivered], [name, "Closed", "ClosedByUs", true], message)
        }
        assert.isAtLeast(after, sent)
        assert.strictEqual(server.methods.length, after)
      }))
  }
})
