/** The protections of servers in `security.md`, attacked from outside. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { request } from "node:http"
import { call, classic, type Headers, initialize, modern, textOf } from "./process.ts"
import { type Running, start } from "./runtime.ts"

const ada = { authorization: "Bearer ada" }
const bob = { authorization: "Bearer bob" }

let vault: Running
beforeAll(async () => {
  vault = await start("vault")
})
afterAll(() => void vault.child.kill("SIGKILL"))

const ask = (init: RequestInit): Promise<Response> => fetch(vault.url, init)

/** A request with any `Host` header, which `fetch` cannot set. */
const statusOf = (headers: Headers, body: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const { hostname, pathname, port } = new URL(vault.url)
    const sent = request({ hostname, port, path: pathname, method: "POST", headers }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.on("error", reject)
    sent.end(body)
  })

describe("programs/vault.ts", () => {
  it("rejects callers without a known token", async () => {
    expect((await ask(call("whoami"))).status).toBe(401)
    expect(await textOf(await ask(call("whoami", {}, ada)))).toBe("ada")
  })

  it("rejects foreign host names (DNS rebinding)", async () => {
    const { body, headers } = call("whoami", {}, { ...ada, host: "evil.example:3000" })
    expect(await statusOf(headers, body)).toBe(403)
    expect(await statusOf({ ...headers, host: "vault.example.com" }, body)).toBe(200)
  })

  it("rejects simple requests and pages of other origins (CSRF)", async () => {
    const { body } = call("whoami")
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
      expect((await ask({ method: "POST", headers: { ...ada, "content-type": type }, body })).status).toBe(415)
    }
    for (const method of ["POST", "GET", "DELETE", "OPTIONS"]) {
      const init = { method, headers: { ...ada, origin: "https://evil.example" } }
      expect([method, (await ask(init)).status]).toEqual([method, 403])
    }
    const own = await ask(call("whoami", {}, { ...ada, origin: "http://localhost:5173" }))
    expect(own.headers.get("access-control-allow-origin")).toBeNull()
  })

  it("rejects the session of another principal", async () => {
    const id = (await ask(initialize(ada))).headers.get("mcp-session-id")!
    expect(id).toMatch(/^[\w-]{22}$/)
    const whoami = { id: 1, method: "tools/call", params: { name: "whoami" } }
    expect((await ask(classic(whoami, { ...bob, "mcp-session-id": id }))).status).toBe(404)
    expect((await ask({ method: "DELETE", headers: { ...bob, "mcp-session-id": id } })).status).toBe(404)
    expect(await textOf(await ask(classic(whoami, { ...ada, "mcp-session-id": id })))).toBe("ada")
  })

  it("rejects headers that differ from the body", async () => {
    expect(await textOf(await ask(call("whoami", {}, { ...ada, "mcp-name": "echo" })))).toMatch(/^-32020/)
    expect(await textOf(await ask(call("whoami", {}, { ...ada, "mcp-method": "tools/list" })))).toMatch(/^-32020/)
  })

  it("does not reach prototypes by names", async () => {
    const body = call("echo", { text: "hi" }, ada).body
    const polluted = body.replace("\"text\":\"hi\"", "\"__proto__\":{\"text\":\"polluted\"}")
    expect(await textOf(await ask({ ...call("echo", {}, ada), body: polluted }))).toContain("Invalid arguments")
    for (const name of ["__proto__", "constructor", "toString"]) {
      expect(await textOf(await ask(call(name, {}, ada)))).toContain("Unknown tool")
      expect(await textOf(await ask(modern(name, {}, ada)))).toMatch(/^-32601/)
    }
  })

  it("rejects bodies that are too large or nested too deeply", async () => {
    const large = await ask(call("echo", { text: "x".repeat(100_000) }, ada))
    expect([large.status, await textOf(large)]).toEqual([413, expect.stringContaining("-32600")])
    const { body, headers } = call("echo", {}, ada)
    const deep = body.replace("\"arguments\":{}", `"arguments":{"text":${"[".repeat(20_000)}${"]".repeat(20_000)}}`)
    expect((await ask({ method: "POST", headers, body: deep })).status).toBeLessThan(500)
  })

  it("does not read files outside the folder", async () => {
    const read = (uri: string) => ask(modern("resources/read", { uri }, bob))
    expect(await (await read("vault://hello.ts")).text()).toContain("Greets a person by name")
    for (const path of ["../README.md", "..%2fREADME.md", "/etc/passwd", "a/../../README.md", "."]) {
      expect([path, await textOf(await read(`vault://${path}`))]).toEqual([path, expect.stringMatching(/^-32602/)])
    }
  })

  it("limits the rate of one caller, and not of others", async () => {
    const codes = new Set<string>()
    for (let n = 0; n < 40; n++) codes.add((await textOf(await ask(call("whoami", {}, bob)))).slice(0, 3))
    expect([...codes].sort()).toEqual(["429", "bob"])
    expect(await textOf(await ask(call("whoami", {}, ada)))).toBe("ada")
  })
})
