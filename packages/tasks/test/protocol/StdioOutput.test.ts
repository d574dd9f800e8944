/**
 * "The server MUST NOT write anything to its `stdout` that is not a valid MCP message": this includes the log of
 * tasks.
 */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { run } from "../../../server/test/stdio/Child.ts"

for (const way of ["runMain", "serve", "layer"]) {
  it.live(
    `stdio (${way}) · logs on stderr, and never on stdout, that tasks end with the process`,
    () =>
      Effect.scoped(Effect.gen(function*() {
        const child = yield* Effect.acquireRelease(
          Effect.sync(() => run("../../../../tasks/test/protocol/fixtures/stdio.ts", [way])),
          (child) => Effect.sync(() => child.process.kill("SIGKILL"))
        )
        const _meta = {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {}
        }
        const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "bake", arguments: {}, _meta } }
        child.process.stdin!.write(`${JSON.stringify(call)}\n`)
        yield* Effect.promise(() => child.stdout.until("A cake"))
        yield* Effect.promise(() => child.stderr.until("tasks are stored in memory and end with this process"))
        // Each line is a message, or this throws.
        expect(child.messages()).toMatchObject([{ id: 1, result: { content: [{ text: "A cake" }] } }])
      })),
    120_000
  )
}
