/** `skein/gateway` as its users write it: servers by URL, by command and of a configuration. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import type * as CoreGateway from "@skein/gateway/Gateway"
import type * as Core from "@skein/gateway/Proxy"
import { AsyncServer, type Definition, invalidRequest, mount, VisibleError, withHttp } from "skein"
import { NodeConfig } from "skein/client"
import {
  gateway,
  type GatewayOptions,
  type GatewayServer,
  proxy,
  type ProxyConnections,
  type ProxyLists,
  type ProxyOptions
} from "skein/gateway"
import { join } from "node:path"
import { afterEach } from "vitest"
import { z } from "zod"
import { callText, withClient, withTransport } from "../server/kit.ts"

const cleanups: Array<() => unknown> = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const command = {
  command: process.execPath,
  args: [
    "--conditions=@skein/source",
    "--disable-warning=ExperimentalWarning",
    join(import.meta.dirname, "remoteProcess.ts")
  ]
}

/** Starts a remote server over HTTP. Its tools return the token of the request, and ask. */
const startRemote = async () => {
  const { close, url } = await new AsyncServer({ name: "remote", version: "1.0.0" })
    .tool(
      "token",
      { annotations: { readOnlyHint: true } },
      (_, { request }) => request.origin?.header?.("authorization") ?? "none"
    )
    .tool("ask", {}, async (_, { elicit }) => {
      const answer = await elicit("Your name?", z.object({ name: z.string() }))
      return answer.action === "accept" ? answer.content.name : answer.action
    })
    .resource("notes://one", { mimeType: "text/plain" }, () => "a note")
    .prompt("greet", {}, () => "Hello")
    .listen({ port: 0 })
  cleanups.push(close)
  return { close, url }
}

const serverOf = (...definitions: ReadonlyArray<Definition>) =>
  new AsyncServer({ name: "desk", version: "1.0.0" }).tool("own", {}, () => "own").use(...definitions)

describe("proxy", () => {
  it("takes over the definitions of a server at a URL, and passes its questions on", async () => {
    const { url } = await startRemote()
    await withClient(
      serverOf(proxy(url)),
      async (client) => {
        expect((await client.listTools()).map(({ name }) => name).toSorted()).toEqual(["ask", "own", "token"])
        expect(await callText(client, "ask")).toBe("Ada")
        expect(await client.readResource("notes://one")).toMatchObject({ contents: [{ text: "a note" }] })
        expect(await client.getPrompt("greet")).toMatchObject({ messages: [{ content: { text: "Hello" } }] })
      },
      { elicit: async () => ({ action: "accept", content: { name: "Ada" } }) }
    )
  })

  it("starts a server by its command, selects tools and mounts them with a prefix", async () => {
    const { url } = await startRemote()
    const lists: Array<ProxyLists> = []
    const server = serverOf(
      mount("child", proxy(command, { label: "child" })),
      proxy(new URL(url), {
        tools: ({ annotations }) => annotations?.readOnlyHint === true,
        resources: false,
        prompts: false,
        onListing: async (listed) => void lists.push(listed)
      })
    )
    await withClient(server, async (client) => {
      expect((await client.listTools()).map(({ name }) => name).toSorted()).toEqual(["child_pid", "own", "token"])
      const pid = Number(await callText(client, "child_pid"))
      expect(pid).toBeGreaterThan(0)
      expect(pid).not.toBe(process.pid)
      expect(await client.listPrompts().catch(() => [])).toEqual([])
    })
    expect(lists.at(-1)?.tools.map(({ name }) => name)).toContain("token")
  })

  it("uses a connection of each principal, with the credentials or the visible error that the author chooses", async () => {
    const { url } = await startRemote()
    let failures = 0
    const server = serverOf(proxy({ url, headers: { authorization: "Bearer desk" } }, {
      connections: {
        per: "principal",
        server: async ({ principal }) => {
          if (principal === undefined && ++failures === 1) throw new Error("the token s3cret is wrong")
          if (principal?.id === "eve") throw new VisibleError("Link your account first")
          if (principal?.id === "mallory") throw withHttp(invalidRequest("You are locked out"), { status: 403 })
          return { url, headers: { authorization: `Bearer of ${principal?.id ?? "nobody"}` } }
        },
        maxConnections: 10,
        idleTimeout: "1 minute"
      }
    }))
    const tokenOf = (id: string) =>
      withTransport(server.transport({ principal: { id } }), (client) => callText(client, "token"))
    expect(await tokenOf("ada")).toBe("Bearer of ada")
    expect(await tokenOf("bob")).toBe("Bearer of bob")
    await withTransport(server.transport(), async (client) => {
      const { content, isError } = await client.callTool("token")
      expect(isError).toBe(true)
      expect(JSON.stringify(content)).not.toContain("s3cret")
      expect(await callText(client, "token")).toBe("Bearer of nobody")
    })
    await withTransport(server.transport({ principal: { id: "eve" } }), async (client) => {
      const visible = { content: [{ type: "text", text: "Link your account first" }], isError: true }
      expect(await client.callTool("token")).toMatchObject(visible)
      await expect(client.readResource("notes://one")).rejects.toThrow("Link your account first")
    })
    await withTransport(server.transport({ principal: { id: "mallory" } }), async (client) => {
      await expect(client.callTool("token")).rejects.toThrow("You are locked out")
    })
  })

  it("starts a process for each session", async () => {
    const server = serverOf(proxy(command, { connections: { per: "session", server: () => command } }))
    const pids = await Promise.all(
      [1, 2].map(() =>
        withTransport(
          server.transport(),
          async (client) => [await callText(client, "pid"), await callText(client, "pid")],
          {
            revisions: ["2025-11-25"]
          }
        )
      )
    )
    for (const [first, second] of pids) expect(first).toBe(second)
    expect(pids[0]![0]).not.toBe(pids[1]![0])
  }, 60_000)

  it("starts without a server that cannot be reached, and fails its calls", async () => {
    const { close, url } = await startRemote()
    await close()
    const tool = { name: "token", inputSchema: { type: "object" } } as const
    const initial = { tools: [tool], resources: [], resourceTemplates: [], prompts: [] }
    const server = serverOf(proxy(url, { initial, readyTimeout: 100, reconnect: { initialDelay: "1 hour" } }))
    await withClient(server, async (client) => {
      expect((await client.listTools()).map(({ name }) => name).toSorted()).toEqual(["own", "token"])
      await expect(client.callTool("token")).rejects.toThrow("is not available now")
    })
  })

  it("fails the start of a server for a value that names no server", async () => {
    await expect(serverOf(proxy({} as never)).listen({ port: 0 })).rejects.toThrow("expects a URL, a command")
  })
})

describe("gateway", () => {
  it("puts the servers of a configuration behind a server, with their names as prefixes", async () => {
    const { url } = await startRemote()
    const config = NodeConfig.object({
      mcpServers: { "my child": command, remote: { url }, broken: { command: "${MISSING_VARIABLE}" } }
    })
    await withClient(
      serverOf(gateway(config, { proxy: (name) => name === "remote" ? { prompts: false } : {} })),
      async (client) => {
        const names = (await client.listTools()).map(({ name }) => name).toSorted()
        expect(names).toEqual(["my_child_pid", "own", "remote_ask", "remote_token"])
        expect(await callText(client, "remote_token")).toBe("none")
      }
    )
    await withClient(serverOf(gateway(config, { prefix: () => "" })), async (client) => {
      expect((await client.listTools()).map(({ name }) => name).toSorted()).toEqual(["ask", "own", "pid", "token"])
    })
  }, 60_000)

  it("has the states of its servers, reloads the configuration, and restarts a server", async () => {
    const { url } = await startRemote()
    const servers: Record<string, object> = { remote: { url } }
    const desk = gateway(NodeConfig.object({ mcpServers: servers }))
    const states = desk.servers()
    await withClient(serverOf(desk), async (client) => {
      expect(await states).toMatchObject([{ name: "remote" }])
      expect(await desk.servers()).toMatchObject([{ info: { name: "remote" }, entries: { tools: 2 } }])
      servers["child"] = command
      expect(await desk.reload()).toMatchObject({ added: ["child"], unchanged: ["remote"] })
      await expect.poll(async () => (await desk.servers()).map(({ state }) => state)).toEqual([
        "connected",
        "connected"
      ])
      await expect.poll(async () => (await client.listTools()).map(({ name }) => name)).toContain("child_pid")
      const pid = await callText(client, "child_pid")
      expect(await desk.servers()).toMatchObject([{ processes: [] }, { processes: [{ pid: Number(pid) }] }])
      await desk.restart("child")
      await expect.poll(() => callText(client, "child_pid").catch(() => pid)).not.toBe(pid)
      await expect(desk.restart("other")).rejects.toMatchObject({ reason: { _tag: "ServerNotFound" } })
    })
  }, 60_000)

  it("fails the start of a server for a configuration that cannot be read", async () => {
    const server = serverOf(gateway(NodeConfig.file("/does/not/exist.json")))
    await expect(server.listen({ port: 0 })).rejects.toMatchObject({ reason: { _tag: "ConfigUnreadable" } })
  })
})

describe("the types of skein/gateway", () => {
  it("are those of @skein/gateway, in the direction in which the values flow", () => {
    type Own = "connections" | "onListing" | "initial" | "tools" | "resources" | "resourceTemplates" | "prompts"
    expectTypeOf<Omit<ProxyOptions, Own | "client">>().toExtend<Omit<Core.Options, Own>>()
    expectTypeOf<Exclude<keyof Core.Options, keyof ProxyOptions>>().toEqualTypeOf<never>()
    expectTypeOf<Omit<ProxyConnections, "per" | "server">>().toExtend<Core.ConnectionOptions>()
    expectTypeOf<Exclude<keyof Core.ConnectionOptions, keyof ProxyConnections>>().toEqualTypeOf<never>()
    expectTypeOf<keyof ProxyLists>().toEqualTypeOf<keyof Core.Lists>()
    expectTypeOf<keyof GatewayOptions>().toEqualTypeOf<keyof CoreGateway.ConfigOptions>()
    expectTypeOf<keyof GatewayServer>().toEqualTypeOf<keyof CoreGateway.ServerState>()
    void (() => {
      // @ts-expect-error a selection returns a boolean
      proxy("https://mail.example/mcp", { tools: ({ name }) => name })
      // @ts-expect-error a duration has a unit
      proxy("https://mail.example/mcp", { readyTimeout: "10 secs" })
      // @ts-expect-error connections are of principals or of sessions
      proxy("https://mail.example/mcp", { connections: { per: "user", server: () => "https://mail.example/mcp" } })
    })
  })
})
