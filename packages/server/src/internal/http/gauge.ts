/**
 * How much an endpoint holds now, in both eras together.
 */
export class Gauge {
  /** Streams that last as long as their client wants. */
  streams = 0
  /** Requests that did not end at once, apart from those that listen. */
  requests = 0
  /** What the bodies of these have in characters, and those that are being read in bytes. */
  bodies = 0

  /** A request listens, which asked with so many characters. */
  listens(size: number): void {
    this.streams++
    this.bodies += size
  }

  left(size: number): void {
    this.streams--
    this.bodies -= size
  }

  /** A request goes on, with a body of so many characters. */
  began(size: number): void {
    this.requests++
    this.bodies += size
  }

  ended(size: number): void {
    this.requests--
    this.bodies -= size
  }
}
