/**
 * What a server loads before it says its first word. Finding and reading modules is most of a start.
 */
import { describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"

// Each module that is loaded is named on stdout.
const hooks = `
  const { registerHooks } = await import("node:module")
  registerHooks({ load: (url, context, next) => (console.log(url), next(url, context)) })
`

const loaded = (...modules: ReadonlyArray<string>): string => {
  const imports = modules.map((module) =>
    `await import(${JSON.stringify(import.meta.resolve(`@skein/server/${module}`))})`
  )
  const program = [hooks, ...imports].join("\n")
  const flags = ["--conditions=@skein/source", "--input-type=module", "--eval", program]
  return execFileSync(process.execPath, flags, { encoding: "utf8" })
}

describe("law 8 · start fast", () => {
  it("who validates no JSON Schema does not load what does", () => {
    expect(loaded("JsonSchema")).toContain("/internal/validation/")
    const others = loaded("Tool", "StandardSchema", "McpServer", "Stdio")
    expect(others).toContain("/Tool.ts")
    expect(others).not.toContain("/internal/validation/")
  })

  it("a server on stdio or HTTP loads no streams of Effect, and none of the other transports", () => {
    const stdio = loaded("Tool", "McpServer", "Stdio")
    const http = loaded("Tool", "McpServer", "NodeHttp")
    for (const modules of [stdio, http]) expect(modules).not.toMatch(/effect\/\w+\/(Stream|Channel|Queue|Logger)\./)
    expect(stdio).not.toContain("/internal/http/")
    expect(stdio).not.toContain("/UriTemplate.ts")
    expect(http).toContain("/internal/http/")
    expect(http).not.toMatch(/\/(Stdio|WebHttp|HttpRoutes)\.ts/)
  })
})
