/** A process that requests addresses through `NodeOutbound`, and prints the outcome of each. */
import * as NodeOutbound from "@skein/auth/NodeOutbound"

const [refuse, ...urls] = process.argv.slice(2)
const { fetch } = NodeOutbound.make({ refusePrivateAddresses: refuse === "refuse" })
for (const url of urls) {
  const init = { method: "GET", headers: {}, redirect: "manual", signal: AbortSignal.timeout(20_000) } as const
  const outcome = await fetch(url, init).then(
    ({ status }) => String(status),
    (error: NodeJS.ErrnoException) => error.code ?? error.name
  )
  process.stdout.write(`${outcome}\n`)
}
