import { assert, describe, it } from "@effect/vitest"
import type { SamplingMessage, SamplingMessageContentBlock } from "@skein/protocol/Sampling"
import * as SamplingMessages from "@skein/protocol/SamplingMessages"
import * as Timed from "./timed.ts"

type Block = SamplingMessageContentBlock

const text: Block = { type: "text", text: "t" }
const use = (id: string): Block => ({ type: "tool_use", id, name: "get_weather", input: {} })
const result = (toolUseId: string): Block => ({ type: "tool_result", toolUseId, content: [] })
const user = (...content: ReadonlyArray<Block>): SamplingMessage => ({ role: "user", content })
const assistant = (...content: ReadonlyArray<Block>): SamplingMessage => ({ role: "assistant", content })

const problem = (...messages: ReadonlyArray<SamplingMessage>) => SamplingMessages.problemOf(messages)

describe("the messages of a sampling request", () => {
  it("2025-11-25 · sampling · accepts each tool use followed by a user message with its results", () => {
    assert.isUndefined(problem())
    assert.isUndefined(problem(user(text), assistant(text), assistant(text), user(text)))
    assert.isUndefined(problem(user(text), assistant(text, use("a"), use("b")), user(result("b"), result("a"))))
    assert.isUndefined(
      problem(user(text), assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a")))
    )
    assert.isUndefined(problem({ role: "assistant", content: use("a") }, { role: "user", content: result("a") }))
  })

  it("2025-11-25 · sampling · a user message with tool results MUST contain ONLY tool results", () => {
    assert.strictEqual(
      problem(assistant(use("a")), user(result("a"), text)),
      "messages[1]: tool results mixed with other content"
    )
  })

  it("2025-11-25 · sampling · each tool use MUST be matched by a result, before any other message", () => {
    assert.strictEqual(problem(assistant(use("a"))), "messages[0]: tool result missing for the tool use \"a\"")
    assert.strictEqual(
      problem(assistant(use("a"), use("b")), user(result("a"))),
      "messages[1]: tool result missing for the tool use \"b\""
    )
    for (const next of [user(text), assistant(text), user()]) {
      assert.strictEqual(
        problem(assistant(use("a")), next, user(result("a"))),
        "messages[1]: tool result missing for the tool use \"a\""
      )
    }
  })

  it("2025-11-25 · schema · the toolUseId of a result MUST match the ID from a previous tool use", () => {
    const orphan = (index: number, id: string) =>
      `messages[${index}]: the tool result "${id}" matches no tool use of the message before`
    assert.strictEqual(problem(user(result("a"))), orphan(0, "a"))
    assert.strictEqual(problem(user(text), user(result("a"))), orphan(1, "a"))
    assert.strictEqual(problem(assistant(use("a")), user(result("a"), result("b"))), orphan(1, "b"))
    assert.strictEqual(
      problem(assistant(use("a")), user(result("a")), assistant(text), user(result("a"))),
      orphan(3, "a")
    )
  })

  it("2025-11-25 · message roles · refuses a tool use of the user and a tool result of the assistant", () => {
    assert.strictEqual(problem(user(use("a"))), "messages[0]: a tool use must be in a message of the assistant")
    assert.strictEqual(
      problem(assistant(use("a")), assistant(result("a"))),
      "messages[1]: a tool result must be in a message of the user"
    )
  })

  it("quotes at most 128 characters of an id", () => {
    assert.isBelow(problem(assistant(use("x".repeat(1_000_000))))!.length, 200)
  })

  it("takes linear time for 100,000 tool uses of one message", () => {
    const ids = Array.from({ length: 100_000 }, (_, i) => String(i))
    Timed.linear(() => {
      assert.isUndefined(problem(assistant(...ids.map(use)), user(...ids.map(result))))
      assert.isString(problem(assistant(...ids.map(use)), user(...ids.map((id) => result(`x${id}`)))))
    })
  })
})

describe("the content of a message", () => {
  it("is a list of blocks, also where it is a single block", () => {
    assert.deepStrictEqual(SamplingMessages.blocksOf(text), [text])
    assert.deepStrictEqual(SamplingMessages.blocksOf([text, use("a")]), [text, use("a")])
  })

  it("uses tools if it has a tool use, and needs sampling.tools if it has a tool use or a tool result", () => {
    assert.isTrue(SamplingMessages.hasToolUse([text, use("a")]))
    assert.isFalse(SamplingMessages.hasToolUse(result("a")))
    assert.isTrue(SamplingMessages.hasTools(use("a")))
    assert.isTrue(SamplingMessages.hasTools([result("a")]))
    assert.isFalse(SamplingMessages.hasTools(text))
  })
})
