import { afterEach, describe, expect, expectTypeOf, it, vi } from "@effect/vitest"
import { AsyncServer, httpConfig } from "skein"
import { AsyncClient } from "skein/client"
import { z } from "zod"

const secret = "0123456789abcdef0123456789abcdef"

const set = (variables: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
}
afterEach(() => void vi.unstubAllEnvs())

describe("httpConfig", () => {
  it("returns the options of the variables as plain values, and no others", async () => {
    set({
      SKEIN_PORT: "8080",
      SKEIN_ALLOWED_HOSTS: "a.example, b.example",
      SKEIN_CORS: "true",
      SKEIN_LEGACY_SSE: "false",
      SKEIN_DRAIN_DELAY: "10s",
      SKEIN_IDLE_TIMEOUT: "10 minutes",
      SKEIN_MAX_STREAMS: "7",
      SKEIN_STATE_KEYS: secret,
      SKEIN_STATELESS: ""
    })
    const options = await httpConfig()
    expect(options).toEqual({
      port: 8080,
      allowedHosts: ["a.example", "b.example"],
      cors: true,
      drainDelay: 10_000,
      limits: { idleTimeout: 600_000, maxStreams: 7 },
      stateKeys: [secret]
    })
    expectTypeOf(options.port).toEqualTypeOf<number | undefined>()
  })

  it("configures a server that listens, with a prefix of its own", async () => {
    set({ TEA_SHOP_PORT: "0", TEA_SHOP_PATH: "/tea", TEA_SHOP_HEALTH: "true", SKEIN_PATH: "/other" })
    const server = new AsyncServer({ name: "shop", version: "1.0.0" })
    const { close, url } = await server.listen(await httpConfig("TEA_SHOP_"))
    try {
      expect(new URL(url).pathname).toBe("/tea")
      expect((await fetch(new URL("/livez", url))).status).toBe(200)
    } finally {
      await close()
    }
  })

  it("gives servers that listen the same keys, so that either continues a request of the other", async () => {
    const ask = async (variables: Readonly<Record<string, string>>) => {
      set(variables)
      const listening = await Promise.all([1, 2].map(async () =>
        new AsyncServer({ name: "shop", version: "1.0.0" })
          .tool("order", {}, async (_, { elicit }) => (await elicit("Really?", z.object({}))).action)
          .listen({ ...await httpConfig(), port: 0 })
      ))
      let requests = 0
      const fetch: typeof globalThis.fetch = (_, init) => globalThis.fetch(listening[requests++ % 2]!.url, init)
      try {
        await using client = await AsyncClient.connect({ url: listening[0]!.url, fetch }, {
          revisions: ["2026-07-28"],
          elicit: () => ({ action: "accept", content: {} })
        })
        return (await client.callTool("order")).content
      } finally {
        await Promise.all(listening.map(({ close }) => close()))
      }
    }
    expect(await ask({ SKEIN_STATE_KEYS: secret })).toMatchObject([{ text: "accept" }])
    await expect(ask({ SKEIN_STATE_KEYS: "" })).rejects.toThrow("this server has not issued it")
  })

  it("rejects to listen with a key that is too short", async () => {
    const server = new AsyncServer({ name: "shop", version: "1.0.0" })
    await expect(server.listen({ port: 0, stateKeys: [secret, "short"] })).rejects.toThrow(
      "key 2 has fewer than 32 bytes"
    )
  })

  it("rejects with the name and the value of a variable that is not valid", async () => {
    set({ SKEIN_DRAIN_DELAY: "soon" })
    await expect(httpConfig()).rejects.toThrow(
      new TypeError("SKEIN_DRAIN_DELAY is \"soon\": expected a duration, such as 10s or \"10 seconds\"")
    )
  })
})
