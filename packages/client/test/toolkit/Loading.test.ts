/**
 * What a client loads before it says its first word.
 */
import { describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"

/** The modules that a program loads, one a line. */
const loaded = (program: string): string => {
  const hooks = "const { registerHooks } = await import(\"node:module\")\n" +
    "registerHooks({ load: (url, context, next) => (console.log(url), next(url, context)) })\n"
  const flags = ["--conditions=@skein/source", "--input-type=module", "--eval", hooks + program]
  return execFileSync(process.execPath, flags, { encoding: "utf8" })
}

const client = JSON.stringify(import.meta.resolve("@skein/client/Client"))

describe("law 8 · start fast", () => {
  it("effect/ai is loaded when a toolkit is made, and not before", () => {
    const before = loaded(`const { toolkit } = await import(${client}); toolkit({})`)
    expect(before).toContain("/Client.ts")
    expect(before).not.toContain("/Toolkit.ts")
    expect(before).not.toMatch(/effect\/\w+\/ai\//)
    const after = loaded(`
      const { toolkit } = await import(${client})
      const { runPromise } = await import(${JSON.stringify(import.meta.resolve("effect/Effect"))})
      await runPromise(toolkit({}))
    `)
    expect(after).toContain("/Toolkit.ts")
    expect(after).toMatch(/effect\/\w+\/ai\/Tool\./)
  })
})
