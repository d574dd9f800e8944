/** Middleware and ready-made parts of the package `skein`. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import {
  AsyncServer,
  type AuditEntry,
  auditLog,
  callToolMiddleware,
  concurrency,
  errorMapping,
  failureOf,
  getPromptMiddleware,
  invalidRequest,
  type JsonObject,
  listPromptsMiddleware,
  listResourcesMiddleware,
  listResourceTemplatesMiddleware,
  listToolsMiddleware,
  maxResponseSize,
  middleware,
  rateLimit,
  type RateLimitStore,
  readResourceMiddleware,
  resultCache,
  retry,
  skipCache,
  timeout,
  VisibleError
} from "skein"
import { z } from "zod"
import { callText, withClient } from "./kit.ts"

const shop = () => new AsyncServer({ name: "shop", version: "1.0.0" })

describe("middleware", () => {
  it("wraps every request, and may change its params and its result", () => {
    const methods: Array<string> = []
    return withClient(
      shop()
        .use(middleware(async (request, next, { header, signal }) => {
          methods.push(request.method)
          expect(header("x")).toBeUndefined()
          expect(signal.aborted).toBe(false)
          if (request.method !== "tools/call") return next()
          const args = request.params?.["arguments"] as JsonObject
          const result = await next(request.with({ params: { ...request.params, arguments: { ...args, n: 2 } } }))
          return { ...result, _meta: { "example.com/original": request.original.params?.["name"] } }
        }))
        .tool("double", { input: z.object({ n: z.number() }) }, ({ n }) => n * 2),
      async (client) => {
        const result = await client.callTool("double", { n: 1 })
        expect(result).toMatchObject({ content: [{ text: "4" }], _meta: { "example.com/original": "double" } })
        expect((await client.listTools()).map(({ name }) => name)).toEqual(["double"])
        expect(methods).toContain("tools/list")
      }
    )
  })

  it("reads a list that is written for all callers, and answers a request itself", () =>
    withClient(
      shop()
        .use(middleware(async (request, next) => {
          if (request.method === "prompts/list") throw invalidRequest("Closed until 8:00")
          const result = await next()
          return request.method === "tools/list"
            ? { ...result, tools: (result["tools"] as Array<object>).slice(1) }
            : result
        }))
        .tool("a", {}, () => "a")
        .tool("b", {}, () => "b")
        .prompt("p", {}, () => "p"),
      async (client) => {
        expect((await client.listTools()).map(({ name }) => name)).toEqual(["b"])
        await expect(client.listPrompts()).rejects.toThrow("Closed until 8:00")
      }
    ))

  it("wraps single operations", () => {
    const seen: Array<string> = []
    return withClient(
      shop()
        .use(
          callToolMiddleware(async (call, next, { client }) => {
            expectTypeOf(call.arguments).toEqualTypeOf<JsonObject>()
            seen.push(`${call.name} for ${client?.name}`)
            const result = await next({ ...call.arguments, limit: 10 })
            return failureOf(result) instanceof VisibleError ? { content: [{ type: "text", text: "other" }] } : result
          }, { tools: ({ definition }) => definition.description === "wrapped" }),
          readResourceMiddleware(async (read, next) => {
            const { contents } = await next()
            return {
              contents: contents.map((each) => ({ ...each, text: `${read.uri} ${"text" in each ? each.text : ""}` }))
            }
          }, { resources: ["shop://menu"] }),
          getPromptMiddleware((prompt, next) => next({ ...prompt.arguments, language: "de" })),
          listToolsMiddleware(async (_, next) => (await next()).filter(({ name }) => name !== "plain")),
          listResourcesMiddleware(async (_, next) => (await next()).map((each) => ({ ...each, title: "T" }))),
          listResourceTemplatesMiddleware(async () => []),
          listPromptsMiddleware(async (list, next) => list.caller.revision === "2024-11-05" ? [] : next())
        )
        .tool("find", { description: "wrapped", input: z.object({ limit: z.number() }) }, ({ limit }) => limit)
        .tool("fail", { description: "wrapped" }, () => {
          throw new VisibleError("sold out")
        })
        .tool("plain", {}, () => "plain")
        .resource("shop://menu", {}, () => "# Tea")
        .template("shop://{id}", { name: "one" }, ({ id }) => id)
        .prompt("greet", { arguments: z.object({ language: z.string() }) }, ({ language }) => language),
      async (client) => {
        expect(await callText(client, "find", { limit: 99 })).toBe("10")
        expect(await callText(client, "fail")).toBe("other")
        expect(await callText(client, "plain")).toBe("plain")
        expect(seen[0]).toMatch(/^find for \w+/)
        expect(seen).toHaveLength(2)
        expect(await client.readResource("shop://menu")).toMatchObject({ contents: [{ text: "shop://menu # Tea" }] })
        expect(await client.getPrompt("greet", { language: "en" })).toMatchObject({
          messages: [{ content: { text: "de" } }]
        })
        expect((await client.listTools()).map(({ name }) => name)).toEqual(["find", "fail"])
        expect(await client.listResources()).toMatchObject([{ title: "T" }])
        expect(await client.listResourceTemplates()).toEqual([])
        expect(await client.listPrompts()).toHaveLength(1)
      }
    )
  })
})

describe("limits", () => {
  it("refuses more requests than the rate, by the key of a name or a function", () => {
    const keys: Array<string | undefined> = []
    const byTarget = (_: unknown, target: string | undefined) => {
      keys.push(target)
      return target ?? ""
    }
    return withClient(
      shop()
        .use(rateLimit({ limit: 1, key: byTarget }), rateLimit({ limit: 2, key: "server", interval: "1 hour" }))
        .tool("a", {}, () => "a")
        .tool("b", {}, () => "b")
        .tool("c", {}, () => "c"),
      async (client) => {
        await client.callTool("a")
        await expect(client.callTool("a")).rejects.toThrow("Too many requests: at most 1")
        await client.callTool("b")
        await expect(client.callTool("c")).rejects.toThrow("Too many requests: at most 2")
        expect(keys).toEqual(["a", "a", "b", "c"])
      }
    )
  })

  it("refuses requests by a store that several servers share, and while it fails", async () => {
    const asked: Array<readonly [key: string, rate: object]> = []
    const counts = new Map<string, number>()
    let isDown = false
    const consume: RateLimitStore["consume"] = async (key, rate) => {
      asked.push([key, rate])
      if (isDown) throw new Error("secret")
      counts.set(key, (counts.get(key) ?? 0) + 1)
      return counts.get(key)! > rate.limit ? 1_500 : undefined
    }
    const call = (onError?: "refuse" | "allow") =>
      withClient(
        shop()
          .use(
            rateLimit({ limit: 1, interval: "1 hour", key: (_, target) => target ?? "", store: { consume, onError } })
          )
          .tool("a", {}, () => "a"),
        (client) => callText(client, "a")
      )
    expect(await call()).toBe("a")
    await expect(call()).rejects.toThrow("at most 1 in 3600 s for tools/call a. Try again in 1.5 s")
    const rate = { limit: 1, intervalMs: 3_600_000, algorithm: "token-bucket" }
    expect(asked).toEqual([["a", rate], ["a", rate]])
    isDown = true
    await expect(call()).rejects.toThrow("The rate limit cannot be checked. Try again later")
    expect(await call("allow")).toBe("a")
  })

  it("ends a handler that takes longer than its timeout", () => {
    let aborted: Promise<unknown> | undefined
    return withClient(
      shop()
        .use(timeout({ tools: { slow: 1 } }))
        .tool("slow", {}, (_, { signal }) => {
          aborted = new Promise((resolve) => signal.addEventListener("abort", resolve))
          return new Promise<string>(() => {})
        }),
      async (client) => {
        expect(await callText(client, "slow")).toContain("took longer than")
        await aborted
      }
    )
  })

  it("refuses a request beyond the concurrency and its queue", () => {
    const gate = Promise.withResolvers<string>()
    const started = Promise.withResolvers<void>()
    return withClient(
      shop()
        .use(concurrency({ limit: 1, maxQueuedRequests: 0, key: "principal" }))
        .tool("wait", {}, () => {
          started.resolve()
          return gate.promise
        }),
      async (client) => {
        const first = callText(client, "wait")
        await started.promise
        await expect(client.callTool("wait")).rejects.toThrow("wait")
        gate.resolve("done")
        expect(await first).toBe("done")
      }
    )
  })

  it("refuses a result beyond its size", () =>
    withClient(
      shop().use(maxResponseSize({ maxBytes: 100, methods: ["tools/call"] })).tool("large", {}, () => "x".repeat(200)),
      async (client) => expect(await callText(client, "large")).toContain("more than the maximum of 100")
    ))

  it("retries failures that the predicate names", () => {
    let runs = 0
    return withClient(
      shop()
        .use(retry({ tools: ["quote"], delay: 1, maxDelay: 1, when: ({ error }) => error instanceof RangeError }))
        .tool("quote", {}, () => {
          if (++runs < 3) throw new RangeError("not yet")
          return "quoted"
        }),
      async (client) => {
        expect(await callText(client, "quote")).toBe("quoted")
        expect(runs).toBe(3)
      }
    )
  })
})

describe("results", () => {
  it("caches results until the cache is cleared", () => {
    let runs = 0
    const server = shop()
      .use(resultCache({ tools: ["count", "never"], lifetime: "1 hour", share: true }))
      .tool("count", {}, () => ++runs)
      .tool("never", {}, async (_, context) => {
        await skipCache(context)
        return ++runs
      })
    return withClient(server, async (client) => {
      expect([await callText(client, "count"), await callText(client, "count")]).toEqual(["1", "1"])
      await server.clearCache("count")
      expect(await callText(client, "count")).toBe("2")
      expect([await callText(client, "never"), await callText(client, "never")]).toEqual(["3", "4"])
    })
  })

  it("records requests, and answers them if the sink fails", () => {
    const entries: Array<AuditEntry> = []
    return withClient(
      shop()
        .use(
          auditLog({ methods: ["tools/call"], arguments: true, sink: (entry) => void entries.push(entry) }),
          auditLog({ sink: () => Promise.reject(new Error("the sink is full")) })
        )
        .tool("add", { input: z.object({ a: z.number() }) }, ({ a }) => a),
      async (client) => {
        expect(await callText(client, "add", { a: 1 })).toBe("1")
        expect(entries).toMatchObject([{ method: "tools/call", target: "add", outcome: "ok", arguments: { a: 1 } }])
      }
    )
  })

  it("changes the errors that clients see", () =>
    withClient(
      shop()
        .use(errorMapping({
          map: ({ error, isDefect, kind, name }) => {
            if (name === "hidden") return null
            if (name === "code") return invalidRequest("not now")
            return error instanceof RangeError ? `${kind} ${isDefect}` : undefined
          }
        }))
        .tool("range", {}, () => {
          throw new RangeError("password")
        })
        .tool("hidden", {}, () => {
          throw new VisibleError("seen")
        })
        .tool("code", {}, () => {
          throw new VisibleError("seen")
        })
        .tool("same", {}, () => {
          throw new VisibleError("seen")
        }),
      async (client) => {
        expect(await callText(client, "range")).toBe("tool true")
        expect(await callText(client, "hidden")).toContain("reference")
        await expect(client.callTool("code")).rejects.toThrow("not now")
        expect(await callText(client, "same")).toBe("seen")
      }
    ))
})
