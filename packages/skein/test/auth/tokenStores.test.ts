/** Where tokens are stored, and who shares them. */
import { describe, expect, it } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  browserTokenStore,
  encryptedTokenStore,
  fileTokenStore,
  Grant,
  hasBrowser,
  keyValueTokenStore,
  memoryTokenStore,
  OAuth,
  OAuthError,
  openBrowser,
  postgresTokenStore,
  SignInError,
  sqliteTokenStore,
  type TokenStore,
  TokenStoreError
} from "skein/auth"
import { errorOf, start } from "./kit.ts"

/** Signs a program in twice with a store, and returns how many tokens were issued. */
const tokensOf = async (store: TokenStore): Promise<number> => {
  await using started = await start({ dev: { clients: [{ clientId: "job", clientSecret: "s" }] } })
  const grant = Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: started.dev.issuer })
  for (let times = 0; times < 2; times++) {
    await using oauth = await OAuth.make({ grant, store })
    const client = await started.connect(oauth)
    await client.callTool("whoami")
    await client.close()
  }
  return started.dev.counts().tokens
}

const withFolder = async (body: (folder: string) => Promise<void>): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), "skein-auth-"))
  try {
    await body(folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

const contents = async (folder: string): Promise<string> => {
  const files = (await readdir(folder)).filter((name) => !name.endsWith(".lock"))
  return (await Promise.all(files.map((name) => readFile(join(folder, name), "utf8")))).join()
}

/** The texts of a service, and how its lock was used. */
const service = () => {
  const texts = new Map<string, string>()
  const locks: Array<string> = []
  return {
    texts,
    locks,
    get: async (key: string) => texts.get(key) ?? null,
    set: async (key: string, value: string) => texts.set(key, value),
    remove: async (key: string) => texts.delete(key),
    lock: async (key: string) => {
      locks.push(`acquired ${key}`)
      return () => void locks.push(`released ${key}`)
    }
  }
}

describe("token stores", () => {
  it("keep a sign-in in memory for everything that uses the store", async () => {
    expect(await tokensOf(memoryTokenStore({ lockTimeout: "1 minute" }))).toBe(1)
  })

  it("keep a sign-in in files, and encrypted ones", () =>
    withFolder(async (folder) => {
      expect(await tokensOf(fileTokenStore({ folder }))).toBe(1)
      expect(await contents(folder)).toContain("accessToken")
      const secret = join(folder, "encrypted")
      const keys = [randomBytes(32).toString("base64")]
      expect(await tokensOf(encryptedTokenStore(fileTokenStore({ folder: secret }), { keys }))).toBe(1)
      expect(await contents(secret)).not.toContain("accessToken")
    }))

  it("keep a sign-in in a database, and report one that cannot be opened", () =>
    withFolder(async (folder) => {
      const filename = join(folder, "tokens.db")
      expect(await tokensOf(sqliteTokenStore({ filename, leaseTimeout: "10 seconds" }))).toBe(1)
      const grant = Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: "https://login.example" })
      for (
        const store of [
          sqliteTokenStore({ filename: join(folder, "none", "tokens.db") }),
          postgresTokenStore({ host: join(folder, "none") })
        ]
      ) {
        const error = await errorOf<TokenStoreError>(OAuth.make({ grant, store }))
        expect([error.name, error.reason._tag]).toEqual(["TokenStoreError", "StoreUnavailable"])
      }
    }))

  it("keep a sign-in in a service by functions, with its lock, or with that of another store", async () => {
    const own = service()
    expect(await tokensOf(keyValueTokenStore({ ...own, prefix: "tea:" }))).toBe(1)
    expect([...own.texts.keys()].every((key) => key.startsWith("tea:"))).toBe(true)
    const acquired = own.locks.filter((lock) => lock.startsWith("acquired")).length
    expect(acquired).toBeGreaterThan(0)
    expect(own.locks.filter((lock) => lock.startsWith("released")).length).toBe(acquired)
    expect(await tokensOf(keyValueTokenStore({ ...service(), lock: memoryTokenStore() }))).toBe(1)
    expect(await tokensOf(keyValueTokenStore({ ...service(), lock: "process" }))).toBe(1)
  })

  it("report that they cannot be used", async () => {
    const grant = Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: "https://login.example" })
    const failing = async (store: TokenStore) => (await errorOf<TokenStoreError>(OAuth.make({ grant, store }))).reason
    expect((await failing(browserTokenStore({ storage: "localStorage" })))._tag).toBe("StoreUnavailable")
    expect((await failing(fileTokenStore({ folder: "/dev/null/tokens" })))._tag).toBe("StoreUnavailable")
    expect((await failing(encryptedTokenStore(memoryTokenStore(), { keys: ["short"] })))._tag).toBe("KeyError")
    const missing = encryptedTokenStore(memoryTokenStore(), { variable: "NO_TOKEN_KEYS" })
    expect((await errorOf(OAuth.make({ grant, store: missing }))).message).toContain("NO_TOKEN_KEYS")
    const down = keyValueTokenStore({ ...service(), get: () => Promise.reject(new Error("no connection")) })
    await using oauth = await OAuth.make({ grant, store: down })
    const error = await errorOf(oauth.state("https://tea.example/mcp"))
    expect(error).toBeInstanceOf(OAuthError)
    expect((error as OAuthError).reason.cause).toBeInstanceOf(TokenStoreError)
    expect(error.message).toContain("no connection")
  })
})

describe("a browser", () => {
  it("is missing where BROWSER says so, and opens pages only", async () => {
    const { BROWSER } = process.env
    process.env["BROWSER"] = "none"
    try {
      expect(await hasBrowser()).toBe(false)
    } finally {
      if (BROWSER === undefined) delete process.env["BROWSER"]
      else process.env["BROWSER"] = BROWSER
    }
    expect(await errorOf(openBrowser(new URL("file:///etc/passwd")))).toBeInstanceOf(SignInError)
  })
})
