import { assert, describe, expect, it } from "@effect/vitest"
import * as AppFile from "@skein/apps/AppFile"
import * as AppHtml from "@skein/apps/AppHtml"
import * as SandboxProxy from "@skein/apps/SandboxProxy"
import * as UiPolicy from "@skein/apps/UiPolicy"
import * as Effect from "effect/Effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { scriptsModule, target } from "../../../scripts/appScripts.ts"

const sandbox = SandboxProxy.make({ hostOrigins: ["https://chat.example", "http://localhost:3000"] })

describe("the sandbox proxy", () => {
  it("enforces the policy of its address by headers, for its hosts only", () => {
    const policy = UiPolicy.make(
      { csp: { connectDomains: ["https://api.example"] }, permissions: { camera: {} } },
      { allowPermission: () => true }
    )
    const { headers, status } = sandbox.answer(`/?${SandboxProxy.query(policy)}`)
    assert.strictEqual(status, 200)
    assert.strictEqual(
      headers["content-security-policy"],
      `${policy.contentSecurityPolicy}; frame-ancestors https://chat.example http://localhost:3000`
    )
    assert.strictEqual(
      headers["permissions-policy"],
      "camera=*, microphone=(), geolocation=(), clipboard-write=()"
    )
  })

  it("makes no policy from an address but one of origins", () => {
    const hostile = JSON.stringify({ connectDomains: ["*", "https://a.example; script-src *", "https://b.example"] })
    const { headers } = sandbox.answer(`/?csp=${encodeURIComponent(hostile)}&permissions=camera;*,usb`)
    assert.include(headers["content-security-policy"]!, "connect-src https://b.example;")
    assert.include(headers["permissions-policy"]!, "camera=()")
  })

  it("refuses a query that is too long or not JSON, and other methods", async () => {
    for (const url of ["//", "/?csp=[]", "/?csp=null"]) assert.strictEqual(sandbox.answer(url).status, 400)
    assert.strictEqual(sandbox.answer("/?csp={").status, 400)
    assert.strictEqual(sandbox.answer(`/?csp=${"x".repeat(8_192)}`).status, 414)
    assert.strictEqual(sandbox.handle(new Request("http://s.example/", { method: "POST" })).status, 405)
    assert.strictEqual(await sandbox.handle(new Request("http://s.example/", { method: "HEAD" })).text(), "")
    assert.include(await sandbox.handle(new Request("http://s.example/")).text(), "<!doctype html>")
  })

  it("applies the decisions of the host a second time", () => {
    const strict = SandboxProxy.make({
      hostOrigins: ["https://chat.example"],
      allowSource: () => false,
      allowPermission: () => false
    })
    const { headers } = strict.answer(
      `/?csp=${encodeURIComponent("{\"connectDomains\":[\"https://a.example\"]}")}&permissions=camera`
    )
    assert.include(headers["content-security-policy"]!, "connect-src 'none'")
    assert.include(headers["permissions-policy"]!, "camera=()")
  })

  it("throws for a host origin that is not one", () => {
    for (const origin of ["https://chat.example/", "chat.example", "*", "null"]) {
      expect(() => SandboxProxy.make({ hostOrigins: [origin] })).toThrow(
        "is not an origin such as https://chat.example.com"
      )
    }
  })
})

describe("the scripts of pages", () => {
  it("are those of packages/apps/page", async () => {
    assert.strictEqual(readFileSync(target, "utf8"), await scriptsModule())
  })

  it("have less than 12,000 characters for a page", () => {
    expect(AppHtml.viewScript.length).toBeLessThan(12_000)
  })
})

describe("a document", () => {
  it("has its parts, and no text ends its element", () => {
    const html = AppHtml.document({
      title: "A < B & \"C\"",
      lang: "de",
      style: "p::after { content: '</style>' }",
      body: "<p id=p></p>",
      script: "p.textContent = '</script><!--'",
      withView: true
    })
    assert.include(html, "<title>A &lt; B &amp; &quot;C&quot;</title>")
    assert.include(html, "<html lang=\"de\">")
    assert.include(html, "p.textContent = '\\x3c/script>\\x3c!--'")
    assert.include(html, "content: '\\3c /style>'")
    assert.lengthOf(html.match(/<\/script>/g)!, 2)
    assert.lengthOf(html.match(/<\/style>/g)!, 1)
    assert.isTrue(html.startsWith("<!doctype html>"))
  })

  it.effect("is read from a file for each read, up to 4 MiB", () =>
    Effect.gen(function*() {
      const folder = mkdtempSync(join(tmpdir(), "skein-apps-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const file = join(folder, "page.html")
      const read = AppFile.read(pathToFileURL(file))
      const missing = yield* Effect.flip(read)
      assert.strictEqual(missing.message, "The page \"page.html\" cannot be read")
      for (const text of ["<p>1", "<p>2"]) {
        writeFileSync(file, text)
        assert.strictEqual(yield* read, text)
      }
      const device = yield* Effect.flip(AppFile.read("/dev/zero"))
      assert.strictEqual(device.message, "The page \"zero\" cannot be read")
      writeFileSync(file, "x".repeat(4_194_305))
      const large = yield* Effect.flip(read)
      assert.strictEqual(large.message, "The page \"page.html\" has 4194305 bytes, more than 4194304")
    }))
})
