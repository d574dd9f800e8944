import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import { AsyncServer } from "skein"
import { AsyncClient } from "skein/client"
import * as z from "skein/zod"
import * as other from "zod"

describe("skein/zod", () => {
  it("has every export of zod", () => {
    expect(Object.keys(z).sort()).toEqual(Object.keys(other).filter((name) => name !== "default").sort())
  })

  it("describes and validates the arguments of a tool, and types them", async () => {
    const input = z.object({ count: z.int().min(1), kind: z.enum(["green", "black"]).default("green") })
    const server = new AsyncServer({ name: "shop", version: "1.0.0" })
      .tool("order", { input }, ({ count, kind }) => {
        expectTypeOf(kind).toEqualTypeOf<"green" | "black">()
        return `${count} ${kind}`
      })
    // @ts-expect-error -- the input has no such member
    server.tool("wrong", { input }, ({ missing }) => String(missing))
    const client = await AsyncClient.connect(server.transport())
    try {
      const tools = await client.listTools()
      expect(tools[0]?.inputSchema).toMatchObject({ properties: { count: { minimum: 1 } }, required: ["count"] })
      expect(await client.callTool("order", { count: 2 })).toMatchObject({ content: [{ text: "2 green" }] })
      expect(await client.callTool("order", { count: 0 })).toMatchObject({ isError: true })
    } finally {
      await client.close()
    }
  })
})
