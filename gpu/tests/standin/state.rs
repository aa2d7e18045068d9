//! State of the stand-in for NVIDIA's driver library: contexts, streams, modules, memory, and work
//! that was submitted and is not done yet.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_int, c_void};
use std::sync::{LazyLock, Mutex};

use super::interpreter::{Memory, Module};

pub(super) type Outcome = Result<(), c_int>;

const INVALID_VALUE: c_int = 1;
const NOT_INITIALIZED: c_int = 3;
const ILLEGAL_ADDRESS: c_int = 700;

/// Kind of memory of an allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Device,
    Pool,
    Managed,
    Pinned,
}

pub(super) struct Allocation {
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    /// Number of the context that the memory belongs to. It is 0 for memory from a memory pool,
    /// which belongs to no context.
    pub(super) context: u64,
    pub(super) device: c_int,
    /// Host address of the memory if it is pinned host memory, and 0 otherwise.
    pub(super) host: u64,
    /// Whether a test has allocated the memory for its own use by `standin_memory`. Such memory is
    /// never freed.
    pub(super) is_of_test: bool,
}

pub(super) struct Context {
    pub(super) device: c_int,
    pub(super) alive: bool,
}

pub(super) struct Stream {
    pub(super) context: u64,
    /// Number of the capture that the stream takes part in, or `None` if the stream is not being
    /// captured. It is the number of the stream on which the capture began.
    pub(super) capture: Option<u64>,
    /// Work of the captures that began on this stream.
    pub(super) captured: Vec<Work>,
}

#[derive(Clone)]
pub(super) enum Work {
    Launch { module: u64, blocks: [u32; 3], threads: u32, parameters: Vec<Vec<u8>> },
    Copy { to: u64, from: u64, bytes: u64 },
}

impl Work {
    pub(super) fn module(&self) -> Option<u64> {
        match self {
            Work::Launch { module, .. } => Some(*module),
            Work::Copy { .. } => None,
        }
    }
}

pub(super) struct State {
    pub(super) initialized: bool,
    /// For each device, the number of its primary context, and the number of references to this
    /// context that were retained and not released.
    pub(super) primaries: Vec<(u64, u64)>,
    pub(super) contexts: HashMap<u64, Context>,
    pub(super) streams: HashMap<u64, Stream>,
    /// For each loaded module, the number of its context, and the parsed PTX text. The key is the
    /// handle of the module.
    pub(super) modules: HashMap<u64, (u64, Module)>,
    /// For each handle that `cuModuleGetFunction` has returned for a kernel, the handle of the
    /// module that contains the kernel.
    pub(super) functions: HashMap<u64, u64>,
    /// For each event, the stream on which it was recorded last, or `None` if it was not recorded
    /// yet.
    pub(super) events: HashMap<u64, Option<u64>>,
    /// Pairs of streams, one for each call of `cuStreamWaitEvent`. The second stream of a pair was
    /// made to wait for the first.
    pub(super) orders: Vec<(u64, u64)>,
    pub(super) memory: Memory,
    /// All allocations. The key is the device address of the allocation.
    pub(super) allocations: BTreeMap<u64, Allocation>,
    /// Work that was submitted and is not done yet, in the order of submission. Each entry has the
    /// number of the context in which the work will be done.
    pub(super) pending: Vec<(u64, Work)>,
    /// Whether bytes that `cuMemcpyHtoD_v2` has copied may still be on their way to device memory.
    pub(super) arriving: bool,
    pub(super) calls: u64,
    pub(super) fail: Option<(u64, c_int)>,
    /// Name of the driver function whose call failed last because a test had requested this by
    /// `fail`.
    pub(super) failed: Option<CString>,
    pub(super) faults: Vec<String>,
    /// Name of a driver function. Every call of this function fails. The name is the value of the
    /// environment variable `STANDIN_REFUSES`. A test sets this variable when it runs the benchmark
    /// program `judge` on the stand-in.
    refuses: Option<String>,
    /// Indices of the kernel runs after which the stand-in deliberately makes a byte wrong. Runs
    /// are counted from 0. After such a run, the stand-in changes the byte at the destination
    /// address of the kernel. The indices are the value of the environment variable
    /// `STANDIN_SPOILS`, for example `0,3`. A test sets this variable when it runs the benchmark
    /// program `judge` on the stand-in.
    spoils: Vec<u64>,
    /// Number of kernel launches that have run so far.
    runs: u64,
    next: u64,
    next_address: u64,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| Mutex::new(State::new()));

thread_local! {
    /// Stack of the contexts that this thread has pushed and not popped. The last entry is the
    /// current context.
    static CONTEXTS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn top() -> Option<u64> {
    CONTEXTS.with_borrow(|contexts| contexts.last().copied())
}

pub(super) fn push(context: u64) {
    CONTEXTS.with_borrow_mut(|contexts| contexts.push(context));
}

pub(super) fn pop() -> Option<u64> {
    CONTEXTS.with_borrow_mut(Vec::pop)
}

pub(super) fn number(pointer: *mut c_void) -> u64 {
    pointer.addr() as u64
}

fn code(outcome: Outcome) -> c_int {
    outcome.err().unwrap_or(0)
}

/// Handles a call of the driver function `name`: counts the call, runs `body`, which implements the
/// function, and returns the result code. If a test has requested that this call fails, returns an
/// error code without running `body`.
pub(super) fn call(name: &str, body: impl FnOnce(&mut State) -> Outcome) -> c_int {
    let mut state = STATE.lock().expect("the stand-in has not failed before");
    let this = state.calls;
    state.calls += 1;
    if let Some((at, code)) = state.fail
        && at == this
    {
        state.failed = CString::new(name).ok();
        return code;
    }
    if state.refuses.as_deref() == Some(name) {
        return INVALID_VALUE;
    }
    if !state.initialized && name != "cuInit" {
        return state.fault(&format!("{name} before cuInit"), NOT_INITIALIZED);
    }
    code(body(&mut state))
}

/// Handles a call of a function that only tests and the benchmark program `judge` call: runs
/// `body`, which implements the function, and returns the result code. Such calls are not counted,
/// and tests cannot make them fail.
pub(super) fn free_call(body: impl FnOnce(&mut State) -> Outcome) -> c_int {
    code(body(&mut STATE.lock().expect("the stand-in has not failed before")))
}

impl State {
    fn new() -> State {
        let mut state = State {
            initialized: false,
            primaries: Vec::new(),
            contexts: HashMap::new(),
            streams: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            events: HashMap::new(),
            orders: Vec::new(),
            memory: Memory::default(),
            allocations: BTreeMap::new(),
            pending: Vec::new(),
            arriving: false,
            calls: 0,
            fail: None,
            failed: None,
            faults: Vec::new(),
            refuses: std::env::var("STANDIN_REFUSES").ok(),
            spoils: std::env::var("STANDIN_SPOILS").map_or(Vec::new(), |numbers| {
                numbers.split(',').map(|n| n.parse().expect("a number")).collect()
            }),
            runs: 0,
            next: 0x100,
            next_address: 0,
        };
        for device in 0..2 {
            let context = state.create_context(device);
            state.primaries.push((context, 0));
        }
        state
    }

    pub(super) fn fault(&mut self, what: &str, code: c_int) -> c_int {
        self.faults.push(what.to_owned());
        code
    }

    /// Returns a new number for a context, stream, module, function or event. It differs from all
    /// numbers that were returned before.
    pub(super) fn id(&mut self) -> u64 {
        self.next += 0x10;
        self.next
    }

    pub(super) fn create_context(&mut self, device: c_int) -> u64 {
        let id = self.id();
        self.contexts.insert(id, Context { device, alive: true });
        id
    }

    pub(super) fn create_stream(&mut self, context: u64) -> u64 {
        let id = self.id();
        self.streams.insert(id, Stream { context, capture: None, captured: Vec::new() });
        id
    }

    /// Returns the number of the primary context of the device `device`. If this context was
    /// destroyed, creates a new primary context first. Returns `None` if there is no such device.
    pub(super) fn primary(&mut self, device: c_int) -> Option<u64> {
        let (context, _) = *self.primaries.get(usize::try_from(device).ok()?)?;
        if self.contexts[&context].alive {
            return Some(context);
        }
        let context = self.create_context(device);
        self.primaries[device as usize].0 = context;
        Some(context)
    }

    /// Destroys a context together with its modules, its pending work, and the memory that
    /// `cuMemAlloc_v2` has allocated. The context's streams are kept, and so is memory that a test
    /// has allocated for its own use.
    pub(super) fn destroy(&mut self, context: u64) {
        self.contexts.get_mut(&context).expect("a context").alive = false;
        self.modules.retain(|_, (of, _)| *of != context);
        self.pending.retain(|(of, _)| *of != context);
        let freed = self
            .allocations
            .extract_if(.., |_, a| a.context == context && a.kind == Kind::Device && !a.is_of_test);
        for (address, _) in freed {
            self.memory.remove(address);
        }
    }

    pub(super) fn allocate(&mut self, kind: Kind, context: u64, bytes: usize) -> u64 {
        const FIRST: u64 = 0x7f00_0000_0000;
        const GAP: u64 = 4096;
        let at = self.next_address.max(FIRST);
        self.next_address = (at + bytes as u64 + 2 * GAP) / GAP * GAP;
        // Kernels access the bytes in `memory`, but host code accesses pinned memory through a host
        // address. So pinned memory also needs bytes at such an address. These bytes are leaked, so
        // that the host address stays valid for ever.
        let host = match kind {
            Kind::Pinned => Vec::leak(vec![0u8; bytes]).as_mut_ptr().expose_provenance() as u64,
            _ => 0,
        };
        let device = self.contexts[&context].device;
        let context = if kind == Kind::Pool { 0 } else { context };
        let allocation = Allocation { kind, bytes: bytes as u64, context, device, host, is_of_test: false };
        self.allocations.insert(at, allocation);
        self.memory.add(at, vec![0xee; bytes]);
        at
    }

    /// Frees the allocation that begins at the device address `address`. It is a fault if there is
    /// no such allocation, or if it does not have the kind `kind` or does not belong to the context
    /// `context`.
    pub(super) fn free(&mut self, kind: Kind, context: u64, address: u64) -> Outcome {
        if self.allocations.get(&address).is_none_or(|a| (a.kind, a.context) != (kind, context)) {
            return Err(self.fault("memory of another context or kind, or none, is freed", INVALID_VALUE));
        }
        self.allocations.remove(&address);
        self.memory.remove(address);
        Ok(())
    }

    /// Finds the allocation that contains the byte at `address`, which is a host address for pinned
    /// memory and a device address for all other memory. Returns the device address of the byte,
    /// and the allocation.
    pub(super) fn find(&self, address: u64) -> Option<(u64, &Allocation)> {
        self.allocations.iter().find_map(|(&at, a)| {
            let start = if a.host == 0 { at } else { a.host };
            (start..start + a.bytes).contains(&address).then(|| (at + (address - start), a))
        })
    }

    /// Returns true if the device address `address` lies in pinned host memory.
    pub(super) fn is_pinned(&self, address: u64) -> bool {
        let before = self.allocations.range(..=address).next_back();
        before.is_some_and(|(at, a)| a.kind == Kind::Pinned && address - at < a.bytes)
    }

    /// Does all pending work of the context `context`. Afterwards, bytes that were copied to device
    /// memory count as arrived.
    pub(super) fn work(&mut self, context: u64) -> Outcome {
        self.arriving = false;
        let (now, later) = std::mem::take(&mut self.pending).into_iter().partition(|(of, _)| *of == context);
        self.pending = later;
        for (_, work) in now {
            self.pinned(|memory, host| memory.copy_from_slice(host));
            let done = match work {
                Work::Launch { module, blocks, threads, parameters } => {
                    self.run(module, blocks, threads, &parameters)
                }
                Work::Copy { to, from, bytes } => {
                    let from = self.memory.bytes(from, bytes).map(<[u8]>::to_vec);
                    from.and_then(|from| {
                        self.memory.bytes_mut(to, bytes)?.copy_from_slice(&from);
                        Ok(())
                    })
                }
            };
            self.pinned(|memory, host| host.copy_from_slice(memory));
            if let Err(why) = done {
                return Err(self.fault(&why, ILLEGAL_ADDRESS));
            }
        }
        Ok(())
    }

    /// Runs the kernel of the module with the number `module`. If `spoils` contains the index of
    /// this run, then makes the byte at the kernel's destination address wrong.
    fn run(
        &mut self,
        module: u64,
        blocks: [u32; 3],
        threads: u32,
        parameters: &[Vec<u8>],
    ) -> Result<(), String> {
        let (_, module) = self.modules.get(&module).ok_or("a kernel of an unloaded module runs")?;
        module.run(&mut self.memory, blocks, threads, parameters)?;
        if self.spoils.contains(&self.runs) {
            // The first parameter of a kernel is the address in user memory, and the second
            // parameter is the address of the packed bytes. A kernel that unpacks writes to user
            // memory, and a kernel that packs writes to the packed bytes.
            let written = &parameters[usize::from(!module.name().ends_with("_unpack"))];
            let written = u64::from_le_bytes(written[..].try_into().expect("an address"));
            self.memory.bytes_mut(written, 1)?[0] ^= 0x80;
        }
        self.runs += 1;
        Ok(())
    }

    pub(super) fn work_all(&mut self) -> Outcome {
        let contexts: Vec<u64> = self.contexts.keys().copied().collect();
        contexts.into_iter().try_for_each(|context| self.work(context))
    }

    /// Calls `both` for each allocation of pinned memory. The stand-in stores the bytes of such an
    /// allocation twice. The first argument of `both` has the bytes that kernels access, and the
    /// second argument has the bytes that host code accesses. `both` overwrites the bytes of one
    /// argument with those of the other.
    fn pinned(&mut self, both: impl Fn(&mut [u8], &mut [u8])) {
        for (&at, a) in self.allocations.iter().filter(|(_, a)| a.host != 0) {
            let place = std::ptr::with_exposed_provenance_mut::<u8>(a.host as usize);
            // SAFETY: `allocate` leaked `a.bytes` bytes at this address, and tests do not use these
            // bytes while they call the stand-in.
            let host = unsafe { std::slice::from_raw_parts_mut(place, a.bytes as usize) };
            both(self.memory.bytes_mut(at, a.bytes).expect("an allocation"), host);
        }
    }
}
