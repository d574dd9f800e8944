/** The JSON Schema of a gateway's configuration, for editors. */
import { describe, expect, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { readFileSync } from "node:fs"
import { path, render } from "./gatewaySchema.ts"

describe("mcp.schema.json", () => {
  const validate = new Ajv2020({ strict: false }).compile(JSON.parse(render()))
  const isValid = (entry: object) => validate({ mcpServers: { files: entry } })

  it("is that of the code: run npm run gateway-schema after a change", () => {
    expect(readFileSync(path, "utf8")).toBe(render())
  })

  it("accepts entries of hosts, with members of their own, and refuses a wrong member gateway", () => {
    expect(isValid({ command: "npx", args: ["x"], env: { A: "1" }, alwaysAllow: ["read"] })).toBe(true)
    expect(
      isValid({ url: "https://a.example", gateway: { prefix: "", tools: { only: ["read_*"] }, heartbeat: false } })
    )
      .toBe(true)
    for (const gateway of [{ prefx: "a" }, { maxConnections: 0 }, { connections: "all" }, { tools: { onlie: [] } }]) {
      expect(isValid({ command: "npx", gateway })).toBe(false)
    }
  })
})
