/**
 * Sets of network addresses, in CIDR notation (RFC 4632, RFC 4291).
 */

interface Network {
  readonly bits: 32 | 128
  readonly prefix: number
  readonly value: bigint
}

const ipv4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/

const valueOfIpv4 = (text: string): bigint | undefined => {
  const parts = ipv4.exec(text)?.slice(1).map(Number)
  if (parts === undefined || parts.some((part) => part > 255)) return undefined
  return parts.reduce((value, part) => value << 8n | BigInt(part), 0n)
}

const valueOfIpv6 = (text: string): bigint | undefined => {
  // An interface may follow, and the last 32 bits may be written as IPv4.
  const [address = ""] = text.split("%")
  const tail = /[\d.]+$/.exec(address)?.[0] ?? ""
  const last = tail.includes(".") ? valueOfIpv4(tail) : undefined
  const groups = last === undefined
    ? address
    : `${address.slice(0, -tail.length)}${(last >> 16n).toString(16)}:${(last & 0xffffn).toString(16)}`
  const halves = groups.split("::")
  if (halves.length > 2) return undefined
  const [left, right] = halves.map((half) => half === "" ? [] : half.split(":"))
  const zeros = 8 - left!.length - (right?.length ?? 0)
  if (right === undefined ? zeros !== 0 : zeros < 1) return undefined
  const all = [...left!, ...Array.from({ length: zeros }, () => "0"), ...right ?? []]
  if (!all.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined
  return all.reduce((value, group) => value << 16n | BigInt(`0x${group}`), 0n)
}

const mapped = 0xffffn << 32n

/** An address, as IPv4 if it is a mapped one. */
const parse = (text: string): Pick<Network, "bits" | "value"> | undefined => {
  const four = valueOfIpv4(text)
  if (four !== undefined) return { bits: 32, value: four }
  const six = text.includes(":") ? valueOfIpv6(text) : undefined
  if (six === undefined) return undefined
  return six >> 32n === mapped >> 32n ? { bits: 32, value: six & 0xffff_ffffn } : { bits: 128, value: six }
}

const parseNetwork = (text: string): Network => {
  const [address = "", length, ...rest] = text.split("/")
  const parsed = parse(address)
  const bits = parsed?.bits ?? 0
  const prefix = length === undefined ? bits : /^\d{1,3}$/.test(length) ? Number(length) : Infinity
  if (parsed === undefined || rest.length > 0 || prefix > bits) {
    throw new Error(`not a network address in CIDR notation: ${text}`)
  }
  return { ...parsed, prefix }
}

/** Makes the test whether an address belongs to one of these networks. Throws if one of them is malformed. */
export const makeNetworks = (texts: ReadonlyArray<string>): (address: string | undefined) => boolean => {
  const networks = texts.map(parseNetwork)
  return (address) => {
    const parsed = address === undefined ? undefined : parse(address)
    if (parsed === undefined) return false
    return networks.some(({ bits, prefix, value }) => {
      const shift = BigInt(bits - prefix)
      return bits === parsed.bits && value >> shift === parsed.value >> shift
    })
  }
}
