/** `skein/tasks` as its users write it: tasks of a server, from the application, and for operators. */
import { describe, expect, it } from "@effect/vitest"
import { AsyncServer, type Definition, type Service, VisibleError } from "skein"
import {
  EventError,
  memoryTasks,
  sqliteTasks,
  StepError,
  StepTimeout,
  task,
  type TaskAlert,
  TaskError,
  type Tasks,
  tasks,
  taskSchedule,
  type TaskState,
  taskTools
} from "skein/tasks"
import { webhook } from "skein/http"
import { fork, spawn } from "node:child_process"
import { createHmac } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, vi } from "vitest"
import { z } from "zod"
import { callText, withClient } from "../server/kit.ts"
import { makeShop } from "./shop.ts"

const cleanups: Array<() => unknown> = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const makeFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "skein-tasks-"))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  return folder
}

const serverOf = (...parts: ReadonlyArray<Definition | Service>) =>
  new AsyncServer({ name: "shop", version: "1.0.0" }).use(...parts)

const listen = async (...parts: ReadonlyArray<Definition | Service>) => {
  const server = await serverOf(...parts).listen({ port: 0 })
  cleanups.push(server.close)
  return server
}

const execArgv = ["--conditions=@skein/source", "--disable-warning=ExperimentalWarning"]

/** Starts a process of the shop. */
const start = (program: string, ...args: ReadonlyArray<string>) => {
  const child = fork(join(import.meta.dirname, `${program}.ts`), args, {
    execArgv,
    stdio: ["ignore", "ignore", "inherit", "ipc"]
  })
  cleanups.push(() => child.kill("SIGKILL"))
  return child
}

/** Starts an order in a process that is killed after the payment. Returns its task. */
const pay = async (folder: string): Promise<string> => {
  const child = start("shopProcess", folder)
  const [{ paid }] = await once(child, "message") as [{ paid: string }]
  child.kill("SIGKILL")
  await once(child, "close")
  return paid
}

const textOf = (state: TaskState | undefined) => {
  const outcome = state?.outcome
  if (outcome?._tag !== "Result") return outcome?.error.message
  const [block] = outcome.result.content
  return `${outcome.result.isError === true ? "failed: " : ""}${block?.type === "text" ? block.text : block?.type}`
}

const memory = () => memoryTasks({ pollInterval: 20 })

/** Runs a task to its end. */
const endOf = async (shop: Tasks, name: string, args = {}) => shop.wait((await shop.start(name, args)).id)

describe("skein/tasks", () => {
  it("submits tasks, which start children, with typed values", async () => {
    const half = task("half", { input: z.object({ n: z.number() }), output: z.object({ n: z.number() }) }, ({ n }) => {
      if (n % 2 === 1) throw new VisibleError(`${n} is odd`)
      return { n: n / 2 }
    })
    const all = task(
      "all",
      { input: z.object({ of: z.array(z.number()) }) },
      async ({ of }, { forEach, join, start }) => {
        const { n } = await join(await start(half, { n: 2 }, { key: "first" }))
        const results = await forEach(half, of.map((n) => ({ n })), { onFailure: "collect" })
        return [n, ...results.map((each) => each.status === "fulfilled" ? each.value.n : "odd")].join()
      }
    )
    const numbers = tasks(memoryTasks({ pollInterval: 20 }), [half, all])
    await listen(numbers)
    const { wait } = await numbers.submit(all, { of: [4, 5, 6] })
    const text: string = await wait()
    expect(text).toBe("1,2,odd,3")
    const failed = await (await numbers.submit(half, { n: 7 })).wait().catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(TaskError)
    expect((failed as TaskError).reason).toMatchObject({ _tag: "Failed", message: "7 is odd" })
  })

  it("runs a task of a client to its result, with its question", () => {
    const folder = makeFolder()
    const { shop } = makeShop(folder, 0)
    return withClient(
      serverOf(shop),
      async (client) => {
        const { content, isError } = await client.callTool("buy", { tea: "sencha" })
        expect(isError).not.toBe(true)
        expect(content).toMatchObject([{ text: "sencha is on its way to Hafen 1" }])
        expect(readFileSync(join(folder, "effects"), "utf8")).toBe("charge 500 32\nship payment-1\n")
      },
      { elicit: async () => ({ action: "accept", content: { address: "Hafen 1" } }) }
    )
  })

  it("says what a store, the list of tasks and a sleep need in a program without types", () => {
    expect(() => sqliteTasks({ file: "tasks.db" } as never)).toThrow("sqliteTasks({ filename: \"tasks.db\" })")
    const rest = task("rest", {}, async (_, { sleep }) => {
      try {
        await sleep("5 seconds", undefined as never)
      } catch (error) {
        return String(error)
      }
      return "no error"
    })
    expect(() => tasks(memoryTasks(), rest as never)).toThrow("tasks(store, [order])")
    return withClient(serverOf(tasks(memoryTasks(), [rest])), async (client) => {
      expect(await callText(client, "rest")).toContain("sleep(\"rest\", \"5 seconds\")")
    })
  })

  it("compensates a task that fails, with the stored result of its step", () => {
    const folder = makeFolder()
    const { shop } = makeShop(folder, 0)
    return withClient(
      serverOf(shop),
      async (client) => {
        expect(await client.callTool("buy", { tea: "sencha", cents: 1 })).toMatchObject({
          isError: true,
          content: [{ text: "No address was given, and the money is paid back" }]
        })
        await expect.poll(() => readFileSync(join(folder, "effects"), "utf8")).toBe(
          "charge 1 32\nrefund payment-1 1970-01-01T00:00:00.000Z\n"
        )
      },
      { elicit: async () => ({ action: "decline" }) }
    )
  })

  it("goes on in the next process after kill -9, and repeats no step", async () => {
    const folder = makeFolder()
    const paid = await pay(folder)
    const second = start("shopProcess", folder, "answer")
    const messages: Array<{ ended?: string; outcome?: unknown }> = []
    second.on("message", (message: object) => void messages.push(message))
    await once(second, "close")
    expect(messages.at(-1)).toMatchObject({
      ended: paid,
      outcome: { result: { content: [{ text: "sencha is on its way to Hafen 1" }] } }
    })
    expect(readFileSync(join(folder, "effects"), "utf8")).toBe("charge 500 32\nship payment-1\n")
  }, 60_000)

  it("goes on in a process that only runs tasks, until SIGTERM", async () => {
    const folder = makeFolder()
    const paid = await pay(folder)
    // Without a channel to this process: nothing but the worker keeps it alive.
    const worker = spawn(process.execPath, [...execArgv, join(import.meta.dirname, "workerProcess.ts"), folder], {
      stdio: ["ignore", "ignore", "inherit"]
    })
    cleanups.push(() => worker.kill("SIGKILL"))
    await using operator = await sqliteTasks({ filename: join(folder, "tasks.db") }).openAdmin()
    await expect.poll(async () => (await operator.admin.inspect(paid))?.questions.length, { timeout: 20_000 }).toBe(1)
    expect(await operator.admin.cancel(paid)).toBe(true)
    const effects = () => readFileSync(join(folder, "effects"), "utf8")
    await expect.poll(effects, { timeout: 20_000 }).toMatch(/^refund payment-1/m)
    worker.kill("SIGTERM")
    expect(await once(worker, "close")).toEqual([0, null])
  }, 60_000)

  it("starts a task from the application, answers its question and waits for it", async () => {
    const { buy, shop } = makeShop(makeFolder(), 0)
    await listen(shop)
    const { id, owner } = await shop.start(buy, { tea: "matcha" }, { principal: { id: "ada" }, key: "order 7" })
    expect(owner).toBe("ada")
    expect((await shop.start(buy, { tea: "sencha" }, { principal: { id: "ada" }, key: "order 7" })).id).toBe(id)
    for await (const { questions } of shop.watch(id)) {
      for (const { key, method } of questions) {
        expect(method).toBe("elicitation/create")
        await shop.answer(id, key, { action: "accept", content: { address: "Hafen 2" } })
      }
    }
    expect(textOf(await shop.wait(id, { signal: AbortSignal.timeout(60_000) }))).toBe("matcha is on its way to Hafen 2")
    expect((await shop.list(["ada"])).map((state) => state.id)).toEqual([id])
    expect((await shop.get(id))?.statusMessage).toBe("Paid")
    await shop.expireSoon(id)
    // @ts-expect-error the name of a tea is missing
    void (() => shop.start(buy, { cents: 1 }))
  })

  it("cancels a task, and rejects with TaskError", async () => {
    const waiting = task("wait", {}, async (_, { sleep }) => void await sleep("long", "1 day"))
    const shop = tasks(memory(), [waiting], { limits: { all: { live: 1 } } })
    await expect(shop.start(waiting, {})).rejects.toThrow("no server and no worker of these tasks runs")
    await listen(shop)
    const { id } = await shop.start(waiting, {})
    const full = await shop.start(waiting, {}).catch((error: unknown) => error)
    expect(full instanceof TaskError && full.reason._tag).toBe("LimitExceeded")
    expect(await shop.cancel(id, "Closed today")).toBe(true)
    expect(await shop.wait(id)).toMatchObject({ status: "cancelled", statusMessage: "Closed today" })
    const unknown = await shop.start("bake").catch((error: unknown) => error)
    expect(unknown instanceof TaskError && unknown.reason).toMatchObject({ _tag: "InvalidOption" })
  })

  it("rejects with StepError for a step whose error is not visible, and retries before", async () => {
    let attempts = 0
    const seen: Array<unknown> = []
    const failing = task("failing", {}, async (_, { compensate, step, taskId }) => {
      await compensate(() => void seen.push("undone"))
      try {
        await step("pay", () => {
          attempts++
          throw new Error("card 1234 is refused")
        }, { retry: { times: 2, initialDelay: 1, factor: 1, maxDelay: 1 } })
      } catch (error) {
        seen.push(taskId.length > 10, error instanceof StepError && error.step)
      }
      throw new VisibleError("Pay in another way")
    })
    const shop = tasks(memory(), [failing])
    await listen(shop)
    expect(textOf(await endOf(shop, "failing"))).toBe("failed: Pay in another way")
    await expect.poll(() => seen).toEqual([true, "pay", "undone"])
    expect(attempts).toBe(3)
  })

  it("retries the errors that `while` accepts, and aborts a step at its timeout", async () => {
    const seen: Array<unknown> = []
    const signals: Array<AbortSignal> = []
    const paying = task("paying", {}, async (_, { step }) => {
      const retry = { times: 3, initialDelay: 1, while: (error: unknown) => error instanceof RangeError }
      const refused = step("refused", () => {
        seen.push("refused")
        if (seen.length === 1) throw new RangeError("again")
        throw new TypeError("never")
      }, { retry })
      await refused.catch((error: unknown) => seen.push(error instanceof StepError && error.message))
      const hangs = step("hangs", ({ signal }) => {
        signals.push(signal)
        return new Promise<void>(() => {})
      }, { timeout: 5, retry: { times: 1, initialDelay: 1, while: (error) => error instanceof StepTimeout } })
      await hangs.catch((error: unknown) => seen.push(error instanceof StepTimeout && [error.step, error.limitMs]))
      const wrong = step("wrong", () => {}, { timeout: Infinity })
      await wrong.catch((error: unknown) => seen.push(error instanceof TaskError && error.reason._tag))
    })
    const shop = tasks(memory(), [paying])
    await listen(shop)
    await endOf(shop, "paying")
    expect(seen).toEqual(["refused", "refused", "never", ["hangs", 5], "InvalidOption"])
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
  })

  it("continues a step from the details of its last heartbeat", async () => {
    const seen: Array<unknown> = []
    const signals: Array<unknown> = []
    const baking = task("baking", {}, async (_, { step }) => {
      await step("bake", async ({ heartbeat, lastHeartbeat, signal }) => {
        const last = await lastHeartbeat()
        seen.push(last)
        if (last !== undefined) return
        await heartbeat({ cakes: 3 })
        signal.addEventListener("abort", () => void heartbeat({ cakes: 9 }).catch((error) => signals.push(error)))
        await new Promise<void>(() => {})
      }, { heartbeatTimeout: 20, retry: { times: 1, initialDelay: 1 } })
      await step("large", ({ heartbeat }) => heartbeat("x".repeat(9000))).catch((error: unknown) =>
        seen.push(`${error}`)
      )
    })
    const shop = tasks(memory(), [baking])
    await listen(shop)
    await endOf(shop, "baking")
    expect(seen).toEqual([undefined, { cakes: 3 }, expect.stringContaining("may have at most 8192")])
    expect(signals).toHaveLength(1)
  })

  it("prepares a call before its task, and passes what JSON makes of it", () => {
    const order = task(
      "order",
      {
        input: z.object({ tea: z.string() }),
        prepare: async ({ tea }, { request }) => ({ tea: tea.toUpperCase(), at: new Date(0), by: request.method })
      },
      async ({ tea }, { prepared, step }) => {
        const at: string = prepared.at
        return await step("order", () => `${tea} ${prepared.tea} ${at} ${prepared.by}`)
      }
    )
    return withClient(serverOf(tasks(memory(), [order])), async (client) => {
      expect((await client.callTool("order", { tea: "sencha" })).content).toMatchObject([
        { text: "sencha SENCHA 1970-01-01T00:00:00.000Z tools/call" }
      ])
    })
  })

  it("commits the statements of a transaction with its record", async () => {
    const book = task("book", {}, async (_, { transaction }) => {
      await transaction("create", (sql) => sql`CREATE TABLE orders (tea TEXT)`)
      await transaction("first", (sql) => sql`INSERT INTO orders VALUES (${"sencha"})`)
      await transaction("second", async (sql) => {
        await sql`INSERT INTO orders VALUES (${"matcha"})`
        throw new Error("no matcha")
      }).catch(() => {})
      const rows = await transaction("read", (sql) => sql<{ tea: string }>`SELECT tea FROM orders`)
      return rows.map(({ tea }) => tea).join()
    })
    const shop = tasks(sqliteTasks({ filename: join(makeFolder(), "tasks.db"), pollInterval: 20 }), [book])
    await listen(shop)
    expect(textOf(await endOf(shop, "book"))).toBe("sencha")
  })

  it("continues with other arguments", async () => {
    const count = task(
      "count",
      { input: z.object({ from: z.int() }) },
      async ({ from }, { continueWith, step }) => {
        const next = await step("next", () => from + 1)
        return next < 4 ? await continueWith({ from: next }) : `${next}`
      }
    )
    const shop = tasks(memory(), [count])
    await listen(shop)
    const { id } = await shop.start(count, { from: 1 })
    expect(textOf(await shop.wait(id))).toBe("4")
  })

  it("ends a section of a cancelled task, cancels a branch, and answers queries", async () => {
    const done: Array<string> = []
    let open = () => {}
    const isOpen = new Promise<void>((resolve) => (open = resolve))
    const travel = task("travel", {}, async (_, { awaitEvent, branch, nonCancellable, query, step }) => {
      let place = "at home"
      await query("place", ({ loud }) => loud === true ? place.toUpperCase() : place)
      const hotel = await branch("hotel", async ({ step }) => {
        await step("room", () => void done.push("room"), {
          compensate: (_, { step }) => step("no room", () => void done.push("no room"))
        })
        return "booked"
      })
      done.push(await hotel.result)
      await hotel.cancel()
      place = await step("go", () => "under way")
      await awaitEvent("begin")
      return await nonCancellable("transfer", async ({ step }) => {
        place = await step("debit", () => "in the section")
        await step("wait", async () => {
          done.push("waits")
          await isOpen
        })
        await step("credit", () => void done.push("credit"))
        return "transferred"
      })
    })
    const shop = tasks(memory(), [travel])
    await listen(shop)
    const { id } = await shop.start("travel")
    await vi.waitFor(async () => expect(await shop.query(id, "place", { loud: true })).toBe("UNDER WAY"))
    expect(done.filter((each) => each !== "booked")).toEqual(["room", "no room"])
    await shop.send(id, "begin", null)
    await vi.waitFor(() => expect(done).toContain("waits"))
    expect(await shop.query(id, "place")).toBe("in the section")
    expect(await shop.cancel(id)).toBe(true)
    open()
    await vi.waitFor(() => expect(done).toContain("credit"))
    await expect(shop.query(id, "time")).rejects.toMatchObject({ reason: { _tag: "QueryError" } })
  })

  it("starts a scheduled task, by the definition and while the program runs", async () => {
    const report = task("report", { input: z.object({ customer: z.string() }) }, ({ customer }) => `for ${customer}`)
    const shop = tasks(memory(), [
      report,
      taskSchedule("nightly", report, { cron: "0 2 * * *", timeZone: "Europe/Berlin", args: { customer: "Acme" } })
    ])
    await listen(shop)
    expect(await shop.schedules.get("nightly")).toMatchObject({ tool: "report", timeZone: "Europe/Berlin" })
    expect(textOf(await shop.wait((await shop.schedules.trigger("nightly"))!.id))).toBe("for Acme")
    await shop.schedules.set("daily", { cron: "0 7 * * *", task: { tool: "report", args: { customer: "Beta" } } })
    expect((await shop.schedules.list()).map(({ name }) => name)).toEqual(["daily", "nightly"])
    expect([await shop.schedules.pause("daily"), await shop.schedules.resume("daily")]).toEqual([true, true])
    const span = { from: Date.parse("2024-03-01"), to: Date.parse("2024-03-03") }
    expect(await shop.schedules.backfill("daily", { ...span, dryRun: true })).toHaveLength(2)
    expect(await shop.schedules.backfill("daily", span)).toMatchObject([{ isStarted: true }, { isStarted: true }])
    expect(await shop.schedules.remove("daily")).toBe(true)
    // @ts-expect-error the argument is not one of the task
    void (() => taskSchedule("wrong", report, { cron: "0 2 * * *", args: { client: "Acme" } }))
  })

  it("has the methods of an operator, in the server and beside it", async () => {
    const filename = join(makeFolder(), "tasks.db")
    const store = sqliteTasks({ filename, pollInterval: 20, synchronous: "full" })
    const add = task("add", { input: z.object({ a: z.int() }) }, async ({ a }, { step }) => step("one", () => a + 1))
    const shop = tasks(store, [add])
    const { close } = await listen(shop)
    expect(await shop.admin.pause("add")).toBe(true)
    const { id } = await shop.start(add, { a: 1 })
    expect((await shop.admin.tools()).map(({ tool }) => tool)).toEqual(["add"])
    const operator = await store.openAdmin()
    cleanups.push(operator.close)
    expect((await operator.admin.list({ tool: "add" })).map(({ place }) => place)).toMatchObject([{ heldBy: "pause" }])
    expect(await operator.admin.resume("add")).toBe(true)
    expect(textOf(await shop.wait(id))).toBe("2")
    expect((await operator.admin.inspect(id, { values: true }))?.log).toMatchObject([{ value: "{\"v\":[2]}" }])
    const again = await shop.admin.rerun(id)
    expect(textOf(await shop.wait(again!.id))).toBe("2")
    expect(await shop.admin.wake(id)).toBe(false)
    expect((await shop.admin.check()).findings).toEqual([])
    const exported = JSON.parse(JSON.stringify(await operator.admin.exportTask(id)))
    expect(await shop.admin.replay(exported)).toEqual({ _tag: "Matches", next: undefined })
    await expect(operator.admin.replay(exported)).rejects.toMatchObject({ reason: { _tag: "UnknownTool" } })
    const imported = await shop.admin.importTask(exported)
    expect([imported.id === id, imported.status]).toEqual([false, "completed"])
    expect((await shop.admin.statistics()).tasks).toMatchObject([{ tool: "add", status: "completed", count: 3 }])
    expect(await shop.admin.workers()).toEqual([])
    expect(await operator.schedules.list()).toEqual([])
    expect(await store.migrate({ dryRun: true })).toMatchObject({ from: expect.any(Number), to: expect.any(Number) })
    await store.backup(`${filename}.copy`)
    await close()
    const copied = await sqliteTasks({ filename: `${filename}.copy` }).openAdmin()
    cleanups.push(copied.close)
    expect(await copied.admin.list({})).toHaveLength(3)
  })

  it("runs in a worker without a server, and locks its file", async () => {
    const store = sqliteTasks({ filename: join(makeFolder(), "tasks.db"), pollInterval: 20 })
    const add = task("add", {}, () => 1)
    const shop = tasks(store, [add])
    const worker = await shop.startWorker()
    cleanups.push(worker.close)
    expect(textOf(await endOf(shop, "add"))).toBe("1")
    const second = await tasks(store, [add]).startWorker().catch((error: unknown) => error)
    expect(second instanceof TaskError && second.reason._tag).toBe("FileLocked")
  })

  it("adds a task while the server runs, and removes it", async () => {
    const shop = tasks(memory(), [task("first", {}, () => 1)])
    const server = serverOf(shop)
    const { close } = await server.listen({ port: 0 })
    cleanups.push(close)
    const late = task("late", {}, async (_, { step }) => step("one", () => "late"))
    const remove = await server.add(late)
    expect(textOf(await shop.wait((await shop.start(late, {})).id))).toBe("late")
    await remove()
    await expect(shop.start(late, {})).rejects.toThrow("\"late\" is not a task of this server")
  })

  it("offers tools for models, and shows them to clients without tasks", () =>
    withClient(
      serverOf(tasks(memory(), [task("add", {}, () => 1)]), taskTools({ visible: () => true })),
      async (client) => {
        const tools = await client.listTools()
        expect(tools.map(({ name }) => name)).toEqual(["add", "task_status", "task_answer", "task_cancel"])
      }
    ))
})

describe("encryption", () => {
  const secret = "0123456789abcdef0123456789abcdef"
  const hide = task("hide", { input: z.object({ text: z.string() }) }, ({ text }) => `hidden ${text}`)

  const run = async (encryption: NonNullable<Parameters<typeof sqliteTasks>[0]["encryption"]>) => {
    const filename = join(makeFolder(), "tasks.db")
    const shop = tasks(sqliteTasks({ filename, encryption, pollInterval: 20 }), [hide])
    const { close } = await listen(shop)
    const { id } = await shop.start(hide, { text: "cleartext" })
    expect(textOf(await shop.wait(id))).toBe("hidden cleartext")
    await close()
    return { filename, text: readFileSync(filename, "latin1") }
  }

  it("encrypts stored texts with a key, and does not start with a short one", async () => {
    const { filename, text } = await run({ keys: [secret] })
    expect(text).not.toContain("cleartext")
    const other = tasks(sqliteTasks({ filename, encryption: { keys: ["short"] } }), [hide])
    const error = await other.startWorker().catch((error: unknown) => error)
    expect(error instanceof TaskError && error.reason._tag).toBe("KeyError")
  })

  it("encrypts with a cipher of the application", async () => {
    const texts: Array<string> = []
    const { text } = await run({
      encrypt: async (text, associatedData) => {
        texts.push(text)
        expect(associatedData).not.toContain("cleartext")
        return Buffer.from(text).toString("base64")
      },
      decrypt: async (encrypted) => Buffer.from(encrypted, "base64").toString()
    })
    expect(text).not.toContain("cleartext")
    expect(texts).toEqual(expect.arrayContaining([expect.stringContaining("hidden cleartext")]))
  })
})

describe("the types of task", () => {
  it("infer arguments, results and stored values, and name mistakes", () => {
    void (() => {
      task("typed", { input: z.object({ a: z.int() }), output: z.object({ b: z.int() }) }, async ({ a }, { step }) => {
        const stored = await step("date", () => ({ at: new Date(), a }))
        const at: string = stored.at
        // @ts-expect-error a bigint has no JSON
        await step("big", () => 1n)
        return { b: at.length + a }
      })
      // @ts-expect-error the result does not match `output`
      task("wrong", { output: z.object({ b: z.int() }) }, async () => ({ b: "no" }))
      // @ts-expect-error pass the schema of the whole object
      task("fields", { input: { a: z.int() } }, async () => "")
      // @ts-expect-error a duration has a unit
      task("unit", { ttl: "3 dys" }, async () => "")
      // @ts-expect-error a task without `prepare` has no prepared value
      task("plain", {}, async (_, { prepared }) => String(prepared))
      // @ts-expect-error a store that ends with the process has no migrations
      memoryTasks().migrate()
    })
    expect(() => task("no handler", {}, undefined as never)).toThrow("A task needs a name, options and a handler")
  })
})

describe("events", () => {
  const Paid = z.object({ receipt: z.string() })
  const order = task("order", { input: z.object({}) }, async (_, { awaitEvent }) => {
    try {
      const { receipt } = await awaitEvent("paid", { schema: Paid, timeout: "1 hour" })
      return `paid: ${receipt}`
    } catch (error) {
      if (!(error instanceof EventError)) throw error
      return `${error.reason._tag} ${JSON.stringify(error.reason.value)}`
    }
  })

  it("are sent to a task, which reads them with a schema of Zod", async () => {
    const shop = tasks(memoryTasks(), [order])
    await listen(shop)
    const one = await shop.start(order, {})
    expect(await shop.send(one.id, "paid", { receipt: "R1" }, { key: "k" })).toBe(true)
    expect(await shop.send(one.id, "paid", { receipt: "R1" }, { key: "k" })).toBe(false)
    expect(textOf(await shop.wait(one.id))).toBe("paid: R1")
    const two = await shop.start(order, {})
    await shop.send(two.id, "paid", { receipt: 5 })
    expect(textOf(await shop.wait(two.id))).toBe("InvalidEvent {\"receipt\":5}")
    await expect(shop.send(two.id, "paid", 1)).rejects.toMatchObject({ reason: { _tag: "AlreadyEnded" } })
    await expect(shop.send("none", "paid", 1)).rejects.toThrow(TaskError)
  })

  it("of a topic are sent to each task that awaits them", async () => {
    const delivery = task("delivery", { input: z.object({ order: z.string() }) }, async ({ order }, { awaitEvent }) => {
      const { receipt } = await awaitEvent("paid", { topic: `order/${order}`, schema: Paid })
      return `delivers ${order}: ${receipt}`
    })
    const shop = tasks(memoryTasks(), [delivery])
    await listen(shop)
    // It is stored for the tasks that await it later.
    expect(await shop.sendAll("paid", "order/1", { receipt: "R1" }, { key: "k" })).toBe(0)
    const both = [await shop.start(delivery, { order: "1" }), await shop.start(delivery, { order: "1" })]
    const ends = await Promise.all(both.map(({ id }) => shop.wait(id)))
    expect(ends.map(textOf)).toEqual(["delivers 1: R1", "delivers 1: R1"])
  })

  it("come from a signed webhook", async () => {
    const shop = tasks(memoryTasks(), [order])
    const key = Buffer.alloc(32, "k")
    const secrets = `whsec_${key.toString("base64")}`
    const server = serverOf(shop).route(
      "POST",
      "/payments",
      webhook({ secrets }, async ({ body, id }) => {
        const { receipt, reference } = JSON.parse(body) as { readonly receipt: string; readonly reference: string }
        await shop.send(reference, "paid", { receipt }, { key: id })
      })
    )
    const { close, url } = await server.listen({ port: 0 })
    cleanups.push(close)
    const { id } = await shop.start(order, {})
    const body = JSON.stringify({ reference: id, receipt: "R2" })
    const seconds = String(Math.floor(Date.now() / 1000))
    const post = (signature: string) =>
      fetch(new URL("/payments", url), {
        method: "POST",
        headers: { "webhook-id": "m1", "webhook-timestamp": seconds, "webhook-signature": signature },
        body
      })
    const signature = createHmac("sha256", key).update(`m1.${seconds}.${body}`).digest("base64")
    expect((await post(`v1,${"A".repeat(43)}=`)).status).toBe(401)
    expect((await post(`v1,${signature}`)).status).toBe(204)
    expect(textOf(await shop.wait(id))).toBe("paid: R2")
  })
})

describe("alerts", () => {
  it("tell of a task that has failed, also after the function has thrown", async () => {
    const alerts: Array<TaskAlert> = []
    let isBroken = true
    const shop = tasks(memoryTasks(), [
      task("fails", {}, async () => {
        throw new VisibleError("No tea")
      })
    ], {
      alerts: {
        notify: async (alert) => {
          alerts.push(alert)
          if (isBroken) throw new Error("No network")
        }
      }
    })
    await listen(shop)
    const first = await shop.start("fails")
    await shop.wait(first.id)
    isBroken = false
    const second = await shop.start("fails")
    await shop.wait(second.id)
    await vi.waitFor(() => expect(alerts.length).toBe(2), { timeout: 30_000 })
    expect(alerts).toMatchObject([
      { _tag: "Failed", task: { id: first.id, tool: "fails" }, outcome: "tool_error", message: "No tea" },
      { _tag: "Failed", task: { id: second.id } }
    ])
  })
})
