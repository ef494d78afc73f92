use std::time::Instant;
use std::io::Cursor;
use verdict_events::*;
use verdict_events::native::*;
use verdict_events::generate::*;
fn drain(s:&mut dyn TraceSource)->(u64,f64){let t=Instant::now();let mut b=Vec::new();let mut n=0;loop{s.next_batch(&mut b).unwrap();if b.is_empty(){break}n+=b.len() as u64; std::hint::black_box(&b);}(n,t.elapsed().as_secs_f64())}
fn main(){
 println!("event {} bytes", size_of::<Event>());
 for addressing in [Addressing::Named, Addressing::Addresses] { for run_length in [1,32,1000] {
  let o=GenerateOptions{events:5_000_000,addressing,run_length,..Default::default()};
  let mut g=Generator::new(o.clone());
  let (n,t)=drain(&mut g); println!("{addressing:?} run {run_length}: generate {:.1} M/s",n as f64/t/1e6);
  for c in [Compression::None,Compression::Lz4,Compression::Zstd]{
   let mut g=Generator::new(o.clone());
   let mut w=NativeWriter::with_compression(Vec::new(),c).unwrap();
   let mut b=Vec::new(); let t=Instant::now();
   loop{g.next_batch(&mut b).unwrap(); if b.is_empty(){break} w.write(&b,g.names()).unwrap();}
   let bytes=w.finish(g.names()).unwrap(); let te=t.elapsed().as_secs_f64();
   let len=bytes.len();
   let mut best=f64::MAX; for _ in 0..3 { let mut r=NativeReader::new("x".into(),Cursor::new(bytes.clone())).unwrap(); let (m,t)=drain(&mut r); assert_eq!(m,n); best=best.min(t);}
   println!("  {c:?}: {:.2} B/event, write {:.1} M/s, read {:.1} M/s",len as f64/n as f64,n as f64/te/1e6,n as f64/best/1e6);
  }
  if addressing==Addressing::Named {
   let mut g=Generator::new(o.clone()); let mut text=Vec::new(); let mut b=Vec::new();
   use std::io::Write;
   loop{g.next_batch(&mut b).unwrap(); if b.is_empty(){break} for e in &b { let n=g.names(); let (t,s)=(n.thread(e.thread),n.site(e.site)); match e.kind{
     EventKind::Read(a)=>writeln!(text,"{t}|r({})|{s}",n.location(a.addr)),EventKind::Write(a)=>writeln!(text,"{t}|w({})|{s}",n.location(a.addr)),
     EventKind::Acquire(l,_)=>writeln!(text,"{t}|acq({})|{s}",n.sync(l)),EventKind::Release(l,_)=>writeln!(text,"{t}|rel({})|{s}",n.sync(l)),
     EventKind::Fork(u)=>writeln!(text,"{t}|fork({})|{s}",n.thread(u)),EventKind::Join(u)=>writeln!(text,"{t}|join({})|{s}",n.thread(u)),
     EventKind::Begin=>writeln!(text,"{t}|begin|{s}"),_=>writeln!(text,"{t}|end|{s}")}.unwrap();}}
   let mut best=f64::MAX; for _ in 0..3 { let mut r=StdReader::new("x".into(),Box::new(Cursor::new(text.clone()))); let (m,t)=drain(&mut r); assert_eq!(m,n); best=best.min(t);}
   println!("  STD: {:.2} B/event, read {:.1} M/s",text.len() as f64/n as f64,n as f64/best/1e6);
  }
 }}
}
