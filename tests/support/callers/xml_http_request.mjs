// As much of XMLHttpRequest, over Node's HTTP client, as Google's grpc-web uses: text that can be read as it arrives.

import http from "node:http";

export class XmlHttpRequest {
  static LOADING = 3;
  readyState = 0;
  status = 0;
  statusText = "";
  responseText = "";
  responseType = "";
  withCredentials = false;
  onreadystatechange = null;
  #method;
  #url;
  #headers = {};
  #responseHeaders = [];
  #request;

  get response() {
    return this.responseText;
  }

  open(method, url) {
    [this.#method, this.#url] = [method, url];
    this.#become(1);
  }

  setRequestHeader(name, value) {
    this.#headers[name] = value;
  }

  getResponseHeader(name) {
    const found = this.#responseHeaders.find(([key]) => key === name.toLowerCase());
    return found ? found[1] : null;
  }

  getAllResponseHeaders() {
    return this.#responseHeaders.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  }

  send(body) {
    this.#request = http.request(this.#url, { method: this.#method, headers: this.#headers }, (response) => {
      this.status = response.statusCode;
      this.statusText = response.statusMessage;
      this.#responseHeaders = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
      this.#become(2);
      response.setEncoding("latin1");
      response.on("data", (text) => {
        this.responseText += text;
        this.#become(3);
      });
      response.on("end", () => this.#become(4));
      response.on("error", () => this.#fail());
    });
    this.#request.on("error", () => this.#fail());
    this.#request.end(body);
  }

  abort() {
    this.onreadystatechange = null;
    this.#request?.destroy();
  }

  #fail() {
    if (this.readyState === 4) return;
    [this.status, this.statusText] = [0, ""];
    this.#become(4);
  }

  #become(state) {
    this.readyState = state;
    this.onreadystatechange?.call(this, { type: "readystatechange" });
  }
}
