#include "member.h"

Member::Member(const Plan &plan, Team &team, int rank)
    : plan_(plan), team_(team), rank_(rank), library_(plan.path) {
  switch (plan.kind) {
    case Kind::kAllReduce:
      library_.get(reduce_, "ncclAllReduce");
      break;
    case Kind::kReduceScatter:
      library_.get(reduce_, "ncclReduceScatter");
      break;
    case Kind::kAllGather:
      library_.get(gather_, "ncclAllGather");
      break;
  }
  check(cudaSetDevice(plan.devices[size_t(rank)]), "choosing a GPU");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  check(cudaEventCreate(&begin_), "making an event");
  check(cudaEventCreate(&end_), "making an event");
  Library::Id id;
  if (rank == 0) {
    library_.check(library_.get_id(&id), "making an id");
    std::memcpy(team.shared->id, &id, sizeof id);
  }
  team.meet();
  std::memcpy(&id, team.shared->id, sizeof id);
  library_.check(library_.init_rank(&comm_, plan.ranks(), id, rank), "making a communicator");
  team.meet();
  // Windows are whole pages of the driver's.
  constexpr int64_t kPage = 2 << 20;
  const size_t bytes = size_t((plan.sizes.back() + kPage - 1) / kPage * kPage);
  source_ = allocate(bytes);
  result_ = allocate(bytes);
  check(cudaMallocHost(reinterpret_cast<void **>(&host_), Numbers::kPiece * sizeof(float)),
        "allocating on the host");
  fill();
  team.meet();
  if (rank == 0) {
    int version = 0;
    library_.check(library_.get_version(&version), "asking for its version");
    std::fprintf(stderr, "nccl_api: %s, version %d, %d GPUs\n", plan.path.c_str(), version,
                 plan.ranks());
  }
  team.shared->ready = 1;
}

// allocate makes a buffer in the way that was asked for.
float *Member::allocate(size_t bytes) {
  void *p = nullptr;
  if (plan_.buffers == Buffers::kPlain) {
    check(cudaMalloc(&p, bytes), "allocating");
  } else {
    Library::MemAlloc *alloc = nullptr;
    library_.get(alloc, "ncclMemAlloc");
    library_.check(alloc(&p, bytes), "allocating with ncclMemAlloc");
  }
  offer(p, bytes);
  return static_cast<float *>(p);
}

// offer tells the library about a buffer.
void Member::offer(void *buffer, size_t bytes) {
  void *handle = nullptr;
  if (plan_.buffers == Buffers::kRegistered) {
    Library::Register *reg = nullptr;
    library_.get(reg, "ncclCommRegister");
    library_.check(reg(comm_, buffer, bytes, &handle), "registering a buffer");
  } else if (plan_.buffers == Buffers::kWindows) {
    Library::WindowRegister *reg = nullptr;
    library_.get(reg, "ncclCommWindowRegister");
    library_.check(reg(comm_, buffer, bytes, &handle, Library::kSymmetric), "making a window");
    if (!handle) throw Trouble("making a window succeeds, but gives none");
  }
}

// input is a small whole number, so that sums are exact. In place an allreduce adds what
// it added before: then inputs are as small as leaves room for many doublings.
float Member::input(int rank, int64_t i) const {
  const uint32_t x = uint32_t(i) * 2654435761u + uint32_t(rank) * 0x9e3779b9u;
  const float v = float(1 + (x >> 13) % 8);
  return plan_.kind == Kind::kAllReduce && plan_.in_place ? std::ldexp(v, -100) : v;
}

// expected are the sums that launches calls, one after the other, have to leave.
Numbers Member::expected(int launches) const {
  const double times = plan_.kind == Kind::kAllReduce && plan_.in_place
                           ? std::pow(double(plan_.ranks()), launches - 1)
                           : 1;
  return Numbers([&](int64_t i) {
    double sum = 0;
    for (int r = 0; r < plan_.ranks(); r++) {
      // In place a reduce-scatter adds to its share what the others have there, every time.
      const bool again = plan_.kind == Kind::kReduceScatter && plan_.in_place && r != rank_;
      sum += double(*inputs_[size_t(r)].at(i)) * (again ? launches : 1);
    }
    return float(sum * times);
  });
}

void Member::fill() {
  for (int r = 0; r < plan_.ranks(); r++)
    inputs_.emplace_back([&](int64_t i) { return input(r, i); });
  const int64_t count = plan_.sizes.back() / int64_t(sizeof(float));
  for (int64_t i = 0; i < count; i += Numbers::kPiece)
    check(cudaMemcpyAsync(source_ + i, inputs_[size_t(rank_)].at(i),
                          size_t(std::min(Numbers::kPiece, count - i)) * sizeof(float),
                          cudaMemcpyHostToDevice, stream_),
          "copying");
  check(cudaStreamSynchronize(stream_), "copying");
}

void Member::place(int64_t bytes) {
  count_ = bytes / int64_t(sizeof(float));
  share_ = count_ / plan_.ranks();
  sent_ = plan_.kind == Kind::kAllGather ? share_ : count_;
  received_ = plan_.kind == Kind::kReduceScatter ? share_ : count_;
  send_ = plan_.in_place ? result_ : source_;
  recv_ = result_;
  if (!plan_.in_place) return;
  if (plan_.kind == Kind::kAllGather) send_ += rank_ * share_;
  if (plan_.kind == Kind::kReduceScatter) recv_ += rank_ * share_;
}

void Member::call() {
  switch (plan_.kind) {
    case Kind::kAllReduce:
      library_.check(
          reduce_(send_, recv_, size_t(count_), Library::kFloat, Library::kSum, comm_, stream_),
          "calling ncclAllReduce");
      break;
    case Kind::kReduceScatter:
      library_.check(
          reduce_(send_, recv_, size_t(share_), Library::kFloat, Library::kSum, comm_, stream_),
          "calling ncclReduceScatter");
      break;
    case Kind::kAllGather:
      library_.check(gather_(send_, recv_, size_t(share_), Library::kFloat, comm_, stream_),
                     "calling ncclAllGather");
      break;
  }
}

// restore fills the result with junk, and puts the inputs where the call looks for them.
void Member::restore() {
  check(cudaMemsetAsync(result_, 0xff, size_t(count_) * sizeof(float), stream_), "clearing");
  if (plan_.in_place)
    check(cudaMemcpyAsync(send_, source_, size_t(sent_) * sizeof(float), cudaMemcpyDeviceToDevice,
                          stream_),
          "copying");
  check(cudaStreamSynchronize(stream_), "copying");
}

cudaGraphExec_t Member::capture(int launches) {
  // Relaxed: a library may make connections while it is captured.
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "capturing");
  for (int i = 0; i < launches; i++) call();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamEndCapture(stream_, &graph), "capturing");
  check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "making a graph");
  check(cudaGraphDestroy(graph), "freeing a graph");
  check(cudaGraphUpload(exec, stream_), "loading a graph");
  return exec;
}

// replay returns the us that a graph took, or the calls themselves where there is none.
double Member::replay(cudaGraphExec_t graph, int launches) {
  restore();
  team_.meet();
  check(cudaEventRecord(begin_, stream_), "recording an event");
  if (graph != nullptr)
    check(cudaGraphLaunch(graph, stream_), "launching a graph");
  else
    for (int i = 0; i < launches; i++) call();
  check(cudaEventRecord(end_, stream_), "recording an event");
  check(cudaStreamSynchronize(stream_), "replaying a graph");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin_, end_), "reading a clock");
  return double(ms) * 1e3;
}

void Member::measure(size_t index) {
  const int64_t bytes = plan_.sizes[index];
  const int launches = plan_.replayed(bytes);
  if (rank_ == 0) team_.shared->wrong = 0;
  place(bytes);
  restore();
  team_.meet();
  call();
  check(cudaStreamSynchronize(stream_), "waiting for a call");
  team_.shared->wrong += wrong(1);
  team_.meet();
  const cudaGraphExec_t graph = plan_.eager ? nullptr : capture(launches);
  constexpr int kWarmup = 5;
  for (int i = 0; i < kWarmup + plan_.repetitions; i++) {
    const double us = replay(graph, launches) / launches;
    if (i >= kWarmup) team_.shared->times[rank_][i - kWarmup] = us;
  }
  team_.shared->wrong += wrong(launches);
  if (graph != nullptr) check(cudaGraphExecDestroy(graph), "freeing a graph");
  team_.meet();
  if (rank_ == 0) {
    team_.shared->rows[index] = row();
    team_.shared->finished = int(index) + 1;
  }
  team_.meet();
}

// row is the median over repetitions of the rank that took longest.
Row Member::row() const {
  std::vector<double> longest;
  for (int i = 0; i < plan_.repetitions; i++) {
    double most = 0;
    for (int r = 0; r < plan_.ranks(); r++) most = std::max(most, team_.shared->times[r][i]);
    longest.push_back(most);
  }
  std::sort(longest.begin(), longest.end());
  const size_t n = longest.size();
  return {(longest[(n - 1) / 2] + longest[n / 2]) / 2, longest.front(), longest.back(),
          team_.shared->wrong};
}

// wrong counts the elements of the result that launches calls, one after the other, must
// not leave, and those of the input that were touched.
long long Member::wrong(int launches) {
  long long bad = 0;
  if (!plan_.in_place) bad += differ(source_, 0, sent_, inputs_[size_t(rank_)]);
  if (plan_.kind == Kind::kAllGather) {
    for (int r = 0; r < plan_.ranks(); r++)
      bad += differ(result_ + r * share_, 0, share_, inputs_[size_t(r)]);
    return bad;
  }
  const int64_t from = plan_.kind == Kind::kReduceScatter ? rank_ * share_ : 0;
  return bad + differ(recv_, from, received_, expected(launches));
}

// differ compares count elements bit for bit with the numbers from one on.
long long Member::differ(const float *device, int64_t from, int64_t count, const Numbers &want) {
  long long bad = 0;
  for (int64_t i = 0; i < count; i += Numbers::kPiece) {
    const int64_t n = std::min(Numbers::kPiece, count - i);
    const size_t bytes = size_t(n) * sizeof(float);
    check(cudaMemcpyAsync(host_, device + i, bytes, cudaMemcpyDeviceToHost, stream_), "copying");
    check(cudaStreamSynchronize(stream_), "copying");
    const float *right = want.at(from + i);
    if (std::memcmp(host_, right, bytes) == 0) continue;
    for (int64_t k = 0; k < n; k++) bad += std::memcmp(host_ + k, right + k, sizeof(float)) != 0;
  }
  return bad;
}
