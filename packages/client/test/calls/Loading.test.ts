/** What a client loads that checks nothing. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"

const program = `
  const { registerHooks } = await import("node:module")
  registerHooks({ load: (url, context, next) => (console.log(url), next(url, context)) })
  await import("@skein/client/Client")
  console.log("loaded")
  const { OutputCheck } = await import(process.argv[1])
  const { runPromise } = await import("effect/Effect")
  const check = new OutputCheck("t", {}, { limits: {}, warn: console.log }, undefined)
  await runPromise(check.run({ content: [], structuredContent: 1 }))
`

describe("law 8 · start fast", () => {
  it("what checks a result is loaded when the first one is checked", () => {
    const internal = new URL("../../src/internal/calls/outputSchema.ts", import.meta.url).href
    const flags = ["--conditions=@skein/source", "--input-type=module", "--eval", program, internal]
    const [before = "", after = ""] = execFileSync(process.execPath, flags, { encoding: "utf8" }).split("loaded\n")
    assert.include(before, "/client/src/Client.ts")
    assert.notInclude(before, "/internal/validation/")
    assert.include(after, "/internal/validation/")
  })
})
