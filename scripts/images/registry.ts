/**
 * A registry on the loopback interface that has the packed packages of this repository, for `npm run images`.
 *
 * It passes other requests on to npm's registry, again if that does not answer, and stores the answers, because the images
 * install the same packages.
 * In a container the URL of the registry is all that a package manager needs: not the certificates or the proxy of this
 * machine.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { basename } from "node:path"
import { setTimeout } from "node:timers/promises"

interface Answer {
  readonly status: number
  readonly type: string
  readonly body: Uint8Array
}

const json = (value: unknown): Answer => ({
  status: 200,
  type: "application/json",
  body: Buffer.from(JSON.stringify(value))
})

/** A registry that listens. */
export interface Registry {
  readonly url: string
  readonly server: Server
}

/** How the registry behind is asked: how often, how long it may take, and the pause before it is asked again, in milliseconds. */
const defaults = { attempts: 6, timeout: 30_000, pause: 5000 }

/** Serves tarballs, and the packages of `upstream`, the URL of a registry. */
export const serveRegistry = async (
  tarballs: ReadonlyArray<string>,
  upstream: string,
  { attempts, pause, timeout } = defaults
): Promise<Registry> => {
  const answers = new Map<string, Promise<Answer>>()
  const server = createServer()
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

  for (const path of tarballs) {
    const body = readFileSync(path)
    const file = execFileSync("tar", ["-xzOf", path, "package/package.json"], { encoding: "utf8" })
    const manifest = JSON.parse(file) as { readonly name: string; readonly version: string }
    const { name, version } = manifest
    const dist = {
      tarball: `${url}-/${basename(path)}`,
      integrity: `sha512-${createHash("sha512").update(body).digest("base64")}`
    }
    const packument = { name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } }
    answers.set(`/${name}`, Promise.resolve(json(packument)))
    answers.set(
      new URL(dist.tarball).pathname,
      Promise.resolve({ status: 200, type: "application/octet-stream", body })
    )
  }

  const askOnce = async (path: string): Promise<Answer> => {
    const response = await fetch(new URL(`.${path}`, upstream), {
      headers: { accept: "application/vnd.npm.install-v1+json" },
      signal: AbortSignal.timeout(timeout)
    })
    if (response.status === 429 || response.status >= 500) throw new Error(`${upstream} answers ${response.status}`)
    const type = response.headers.get("content-type") ?? "application/octet-stream"
    const body = Buffer.from(await response.arrayBuffer())
    // The tarballs are fetched through this registry, too.
    const isJson = type.includes("json")
    return {
      status: response.status,
      type,
      body: isJson ? Buffer.from(body.toString().replaceAll(upstream, url)) : body
    }
  }

  const ask = async (path: string): Promise<Answer> => {
    for (let left = attempts;; left--) {
      try {
        return await askOnce(path)
      } catch (error) {
        if (left <= 1) throw error
        await setTimeout(pause)
      }
    }
  }

  server.on("request", (request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", url).pathname)
    const answer = answers.get(path) ?? ask(path)
    answers.set(path, answer)
    answer.then(({ body, status, type }) => response.writeHead(status, { "content-type": type }).end(body), (error) => {
      answers.delete(path)
      response.writeHead(502).end(String(error))
    })
  })
  return { url, server }
}
