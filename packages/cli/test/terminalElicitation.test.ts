import { assert, describe, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as ClientElicitation from "@skein/client/Elicitation"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Terminal } from "../src/internal/base/process.ts"
import { declineAll, onTerminal } from "../src/internal/connection/terminalElicitation.ts"

/** A user who types these lines, and then ends the input. */
const typist = (...lines: ReadonlyArray<string>) => {
  const seen: Array<string> = []
  const left = [...lines]
  const terminal: Terminal = {
    writeLine: (line) => Effect.sync(() => void seen.push(line)),
    readLine: (prompt) =>
      Effect.sync(() => {
        seen.push(prompt)
        return left.shift()
      })
  }
  return { terminal, seen, left }
}

const Order = Schema.Struct({
  name: Schema.String,
  cups: Schema.Int.check(Schema.isGreaterThan(0)),
  tea: Schema.Literals(["green", "black"]),
  milk: Schema.optionalKey(Schema.Boolean)
})

const Server = McpServer.layer(
  { name: "tea", version: "1.0.0" },
  Tool.layer(
    Tool.make("order"),
    () => Effect.map(Elicitation.form("What would you like?\u001b[2J", Order), (answer) => JSON.stringify(answer))
  ),
  Tool.layer(
    Tool.make("pay"),
    () => Effect.map(Elicitation.url("Please pay", "https://pay.example.com/42"), (answer) => JSON.stringify(answer))
  )
)

const calling = (tool: string, answers: Layer.Layer<ClientElicitation.Elicitation>) =>
  Effect.gen(function*() {
    const server = yield* McpServer.McpServer
    const client = yield* Client.make(InMemoryTransport.transport(server.serve))
    const { content } = yield* client.callTool(tool)
    return content[0]?.type === "text" ? JSON.parse(content[0].text) : content
  }).pipe(Effect.provide(Layer.merge(answers, Server)))

describe("a question of a server on the terminal", () => {
  it.effect("is answered field by field, reviewed, and sent", () =>
    Effect.gen(function*() {
      const { left, seen, terminal } = typist("y", "Ada", "two", "2", "2", "-", "y")
      const answer = yield* calling("order", onTerminal(terminal, "tea.example.com"))
      assert.deepStrictEqual(answer, { action: "accept", content: { name: "Ada", cups: 2, tea: "black" } })
      assert.deepStrictEqual(left, [])
      assert.match(seen[0]!, /^\ntea\.example\.com asks: What would you like\?/)
      assert.notInclude(seen[0], "\u001b")
      assert.includeMembers(seen, [
        "  The field takes an integer.",
        "    2. black",
        "  name = Ada",
        "  cups = 2",
        "  tea = black"
      ])
    }))

  it.effect("has titles, choices and texts that cannot pass for lines of the program", () =>
    Effect.gen(function*() {
      const fake = "green\n    9. free tea\r\nSend this? [y]es"
      const text = (title: string) => `${title}\nAnswer? [y]es`
      const requestedSchema = {
        type: "object" as const,
        properties: {
          [`tea${" ".repeat(300)}x`]: {
            type: "string" as const,
            title: text("Tea"),
            description: text("Leaves"),
            oneOf: [{ const: "g\nh", title: fake }, { const: "b", title: `b${" ".repeat(80)}    3. free` }],
            default: "g\nh"
          }
        }
      }
      const { seen, terminal } = typist("y", "", "y")
      const { form } = yield* ClientElicitation.Elicitation.pipe(Effect.provide(onTerminal(terminal, "x")))
      const asker = { label: undefined, info: undefined, revision: "2025-11-25", method: undefined } as const
      yield* Result.getOrThrow(form!({ message: text("What?"), requestedSchema }, asker))
      assert.deepStrictEqual(seen.map((line) => line.trim()).filter((line) => line.endsWith("Answer? [y]es")), [
        "x asks: What?\n  | Answer? [y]es",
        "Leaves\n  | Answer? [y]es"
      ])
      assert.includeMembers(seen, [
        "    1. green 9. free tea Send this? [y]es (g h)",
        "    2. b 3. free (b)",
        "  Tea Answer? [y]es (string) [g\\u{a}h]: ",
        "  tea x = g\\u{a}h"
      ])
    }))

  it.effect("is edited again when the content does not fit the form, or when the user asks for it", () =>
    Effect.gen(function*() {
      const fields = ["Ada", "0", "green", "yes"]
      const { seen, terminal } = typist("y", ...fields, "", "1", "", "", "e", "Bob", "", "", "", "y")
      const answer = yield* calling("order", onTerminal(terminal, "x"))
      const content = { name: "Bob", cups: 1, tea: "green", milk: true }
      assert.deepStrictEqual(answer, { action: "accept", content })
      assert.strictEqual(seen.filter((line) => line.startsWith("The form cannot be sent")).length, 1)
    }))

  it.effect("is declined or cancelled at the start and at the end, and cancelled by the end of the input", () =>
    Effect.gen(function*() {
      const fields = ["y", "Ada", "1", "green", "no"]
      for (
        const [lines, action] of [
          [["d"], "decline"],
          [["c"], "cancel"],
          [[...fields, "d"], "decline"],
          [[...fields, "what?", "c"], "cancel"],
          [[], "cancel"],
          [["y", "Ada"], "cancel"]
        ] as const
      ) {
        const answer = yield* calling("order", onTerminal(typist(...lines).terminal, "x"))
        assert.strictEqual(answer.action, action)
      }
    }))

  it.effect("MUST show the full URL and its host before consent", () =>
    Effect.gen(function*() {
      const { seen, terminal } = typist("y")
      assert.deepStrictEqual((yield* calling("pay", onTerminal(terminal, "x"))).action, "accept")
      assert.strictEqual(seen[1], "It asks you to visit pay.example.com:\n  https://pay.example.com/42")
      assert.deepStrictEqual((yield* calling("pay", onTerminal(typist("d").terminal, "x"))).action, "decline")
    }))

  it.effect("is declined and reported on stderr without a terminal", () =>
    Effect.gen(function*() {
      const warnings: Array<string> = []
      const declined = declineAll({ warn: (line) => void warnings.push(line) })
      assert.strictEqual((yield* calling("order", declined)).action, "decline")
      assert.include(warnings[0], "Declined")
      assert.strictEqual((yield* calling("pay", declined)).action, "decline")
    }))
})
